"""`profiles`: workflows in the form of maintenance-controller's configuration file.

A file that was written for maintenance-controller loads as it is. So unknown keys are ignored, with a warning
of `reconciler check-config`, unless they may be misspelt limits, and the older forms of instances and
profiles are read, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, model_validator

from reconciler.calendar.values import literal, near
from reconciler.model import limits
from reconciler.model.expression import ExpressionError, names, parse
from reconciler.model.record import State
from reconciler.settings.loose import GoDuration, LooseFlag, LooseSection, RequiredText
from reconciler.settings.mistakes import Mistake, Mistakes, Path, keys_at, mistakes_of
from reconciler.settings.profiles import ProfileSettings

Types = Mapping[str, type[LooseSection]]


# Settings without workflows need no types. Their sections are a third of all.
def _check_types() -> Types:
    from reconciler.features.workflows.check_types import CHECK_CONFIGS

    return CHECK_CONFIGS


def _trigger_types() -> Types:
    from reconciler.features.workflows.trigger_types import TRIGGER_TYPES

    return TRIGGER_TYPES


def _notify_types() -> Types:
    from reconciler.features.workflows.notify_types import NOTIFY_TYPES

    return NOTIFY_TYPES


def _configured(types: Types, kind: str, config: object, path: Path) -> BaseModel:
    """Return a configuration as the section of its type; `path` is that of the type. Raises Mistakes."""
    section = types.get(kind)
    if section is None:
        known = sorted(types)
        hint = near(kind, known) or f"; the types are {', '.join(known)}"
        raise Mistakes((Mistake((*path, "type"), f"there is no type {literal(kind)} here{hint}"),))
    try:
        return section.model_validate(config, by_alias=True, by_name=False)
    except ValidationError as error:
        raise Mistakes(
            tuple(
                Mistake((*path, "config", *mistake.path), mistake.message)
                for details in error.errors(include_url=False)
                for mistake in mistakes_of(details, lambda path: keys_at(section, path))
            )
        ) from error


class Instance(LooseSection):
    """One plugin with its configuration, under a name that chains use."""

    types: ClassVar[Callable[[], Types]] = dict

    name: RequiredText = Field(description="The name in chains.")
    type: RequiredText = Field(description="The type.")
    config: dict[str, Any] = Field(default={}, repr=False, description="The keys of the type. Default: none.")
    _config: BaseModel = PrivateAttr(default_factory=LooseSection)

    @model_validator(mode="before")
    @classmethod
    def _older_form(cls, data: Any) -> Any:
        """Read `{hasLabel: {name, config}}`, as older versions of maintenance-controller do."""
        if isinstance(data, dict) and len(data) == 1:
            ((kind, below),) = data.items()
            if isinstance(below, dict) and "name" in below and "type" not in below:
                return {"type": kind, **below}
        return data

    @model_validator(mode="after")
    def _of_its_type(self) -> Instance:
        self._config = _configured(type(self).types(), self.type, self.config, ())
        return self

    @property
    def settings(self) -> Any:
        """The configuration, as the section of its type."""
        return self._config


class CheckInstance(Instance):
    """A check with its configuration."""

    types = staticmethod(_check_types)


class TriggerInstance(Instance):
    """A trigger with its configuration."""

    types = staticmethod(_trigger_types)


class Schedule(LooseSection):
    """When a notification is sent."""

    type: RequiredText = Field(
        default="periodic", description="`periodic`, `scheduled` or `oneshot`, in upper or lower case."
    )
    config: dict[str, Any] = Field(default={}, description="The keys of the type. Default: none.")
    _config: BaseModel = PrivateAttr(default_factory=LooseSection)

    @model_validator(mode="after")
    def _of_its_type(self) -> Schedule:
        from reconciler.features.workflows.notify_types import SCHEDULE_TYPES

        self._config = _configured(SCHEDULE_TYPES, self.type.lower(), self.config, ())
        return self

    @property
    def settings(self) -> Any:
        """The configuration, as the section of its type."""
        return self._config


class NotifyInstance(Instance):
    """A notification with its configuration."""

    types = staticmethod(_notify_types)

    schedule: Schedule = Field(default_factory=Schedule, description="When it is sent. Default: `periodic`.")


class Instances(LooseSection):
    """The plugins that profiles use."""

    check: tuple[CheckInstance, ...] = Field(
        default=(), description="Checks. Names have letters, digits and `_`. Default: none."
    )
    trigger: tuple[TriggerInstance, ...] = Field(default=(), description="Triggers. Default: none.")
    notify: tuple[NotifyInstance, ...] = Field(default=(), description="Notifications. Default: none.")


class Intervals(LooseSection):
    """How often nodes are examined."""

    without_effect = MappingProxyType(
        {"notify": ("has no effect, as in maintenance-controller itself", "remove it")}
    )

    requeue: GoDuration | None = Field(
        default=None,
        description="The longest time between two passes, such as `200ms`. Default: that of `--every`.",
    )

    @model_validator(mode="after")
    def _takes_time(self) -> Intervals:
        if self.requeue is not None and self.requeue <= timedelta():
            raise Mistakes((Mistake(("requeue",), "is 0; write a longer time, like 1m"),))
        return self


def _listed_profiles(data: Any) -> Any:
    """Read profiles as a mapping by their names, as older versions of maintenance-controller do."""
    profiles = data.get("profiles") if isinstance(data, dict) else None
    if not isinstance(profiles, dict):
        return data
    return {**data, "profiles": [{"name": name, **(rules or {})} for name, rules in profiles.items()]}


class WorkflowSettings(LooseSection):
    """Workflows in the form of maintenance-controller's configuration file."""

    without_effect = MappingProxyType(
        {"dashboard": ("has no effect: there is no dashboard here", "remove it if you do not go back")}
    )

    intervals: Intervals = Field(default_factory=Intervals, description="How often nodes are examined.")
    instances: Instances = Field(default_factory=Instances, description="The plugins that they use.")
    profiles: tuple[ProfileSettings, ...] = Field(
        default=(),
        description="The label `<keys.prefix>/maintenance-profile` of a node selects one, or several "
        "joined by `--`; without it, `default`. Default: none.",
    )
    shuffle_counts: LooseFlag = Field(
        default=False,
        description="Whether `serve` counts the pods that workflows move, which needs `k8s/shuffles`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _older_form(cls, data: Any) -> Any:
        return _listed_profiles(data)

    @model_validator(mode="after")
    def _names_exist(self) -> WorkflowSettings:
        mistakes: list[Mistake] = []
        known = {
            kind: [instance.name for instance in getattr(self.instances, kind)]
            for kind in ("check", "trigger", "notify")
        }
        lists: list[tuple[Path, list[str]]] = [(("instances", kind), given) for kind, given in known.items()]
        for path, given in (*lists, (("profiles",), [profile.name for profile in self.profiles])):
            if len(given) > limits.INSTANCES:
                mistakes.append(Mistake(path, f"has {len(given)} entries; the limit is {limits.INSTANCES}"))
            for place, name in enumerate(given):
                if name in given[:place]:
                    first = given.index(name)
                    message = f"{literal(name)} is also the name of entry {first + 1}; names are unique"
                    mistakes.append(Mistake((*path, place, "name"), message))
        for place, profile in enumerate(self.profiles):
            mistakes += _unknown_in(profile, place, known)
        if mistakes:
            raise Mistakes(tuple(mistakes))
        return self

    @property
    def on(self) -> bool:
        """Whether the settings have any workflow."""
        return bool(self.profiles)


def unknown_names(content: object) -> Iterator[Mistake]:
    """Yield the names in profiles that no instance has, where other mistakes make the workflows invalid.

    `content` are the workflows as the file has them. A profile that is invalid itself is left out.
    """
    content = _listed_profiles(content)
    instances, profiles = (
        content.get(key) if isinstance(content, dict) else None for key in ("instances", "profiles")
    )
    known = {kind: list(_names_in(instances, kind)) for kind in ("check", "trigger", "notify")}
    for place, raw in enumerate(profiles if isinstance(profiles, list) else ()):
        try:
            profile = ProfileSettings.model_validate(raw, by_alias=True, by_name=False)
        except ValidationError:
            continue
        yield from _unknown_in(profile, place, known)


def _names_in(instances: object, kind: str) -> Iterator[str]:
    entries = instances.get(kind) if isinstance(instances, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        below = [each for each in entry.values() if isinstance(each, dict)]
        yield from (str(each["name"]) for each in (entry, *below) if "name" in each)


def _unknown_in(profile: ProfileSettings, place: int, known: Mapping[str, list[str]]) -> Iterator[Mistake]:
    for state in State:
        rules, path = profile.rules(state), ("profiles", place, state.value)
        yield from _not_among(rules.enter, known["trigger"], (*path, "enter"), "trigger")
        yield from _not_among(rules.notify, known["notify"], (*path, "notify"), "notify")
        for number, step in enumerate(rules.transitions):
            there = (*path, "transitions", number)
            yield from _not_among(step.trigger, known["trigger"], (*there, "trigger"), "trigger")
            try:
                asked = names(parse(step.check))
            except ExpressionError as error:
                yield Mistake((*there, "check"), str(error))
                continue
            yield from _not_among(asked, known["check"], (*there, "check"), "check")


def _not_among(given: tuple[str, ...], known: list[str], path: Path, kind: str) -> Iterator[Mistake]:
    for name in given:
        if name not in known:
            yield Mistake(path, f"instances.{kind} has no {literal(name)}{near(name, known)}")


def idle(workflows: WorkflowSettings) -> str:
    """Return why a file with these workflows and nothing else never does anything, empty if it does."""
    given = workflows.instances
    if workflows.on or given.check or given.trigger or given.notify:
        return ""
    return (
        "there is none: nothing is ever done, nor what the ESX and Kubernikus controllers do with their own "
        "files; maintenance-controller keeps doing that with --enable-esx-maintenance and "
        "--enable-kubernikus-maintenance and without a maintenance.yaml"
    )
