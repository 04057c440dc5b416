"""`profiles`: the section of workflows, and what the core asks of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from pydantic import BaseModel

from reconciler.features.workflows.section import WorkflowSettings, idle, unknown_names
from reconciler.model.grants import Grants
from reconciler.model.messages import MessageReceiver
from reconciler.settings.mistakes import KeyWarning, Path
from reconciler.settings.profiles import DEFAULT_PROFILE, SEPARATOR
from reconciler.settings.schema import NO_PROFILES, FeatureSection, Form, Profiles, Settings


def _is_file(file: Mapping[str, object]) -> bool:
    """Whether a file has the top-level keys of maintenance-controller's configuration."""
    return "intervals" in file or "instances" in file or isinstance(file.get("profiles"), list)


def _texts_at(section: object, path: Path) -> tuple[str, ...]:
    """Return the texts that a section has at a path of its file, none if there is something else or nothing.

    A merge key (`<<`), and the type in an older form of an instance, are levels of the file only.
    """
    here, merged = section, False
    for part in path:
        if part == "<<" or (merged and isinstance(part, int)):
            merged = part == "<<"
            continue
        merged = False
        if isinstance(here, BaseModel):
            names = {str(field.alias or name): name for name, field in type(here).model_fields.items()}
            if part == "config" and hasattr(here, "settings"):
                here = here.settings
            elif part in names:
                here = getattr(here, names[str(part)])
            elif part != getattr(here, "type", None):
                return ()
        elif isinstance(here, tuple):
            by_name = (each for each in here if getattr(each, "name", None) == part)
            here = here[part] if isinstance(part, int) and part < len(here) else next(by_name, None)
        else:
            here = here.get(part) if isinstance(here, Mapping) else None
    texts = here if isinstance(here, tuple) else (here,)
    return tuple(text for text in texts if isinstance(text, str))


class _Profiles(FeatureSection[WorkflowSettings], frozen=True, kw_only=True):
    # What is said of workflows needs the types of all instances, and few settings have any.

    def warnings(self, settings: Settings, now: datetime) -> Iterator[KeyWarning]:
        del now
        if self.of(settings) != WorkflowSettings() or settings.origin.foreign:
            from reconciler.features.workflows.check_config import warnings

            yield from warnings(self.of(settings), settings)

    def explained(self, settings: Settings) -> Iterator[str]:
        if self.of(settings).on:
            from reconciler.features.workflows.check_config import explained

            yield "Workflows"
            yield from explained(self.of(settings), settings)

    def grants(self, settings: Settings) -> Grants:
        from reconciler.features.workflows.check_config import grants

        return grants(self.of(settings), settings.keys.prefix)

    def profiles(self, settings: Settings) -> Profiles:
        given = self.of(settings)
        if given == WorkflowSettings():
            return NO_PROFILES
        label = settings.keys.names.maintenance_profile
        instances = given.instances
        return Profiles(
            tuple(profile.name for profile in given.profiles),
            lambda labels: frozenset((labels.get(label) or DEFAULT_PROFILE).split(SEPARATOR)),
            tuple(MessageReceiver(each.name, each.type, each.settings.receiver) for each in instances.notify),
            given.intervals.requeue,
            checks=frozenset(check.type for check in instances.check),
        )


PROFILES = _Profiles(
    key="profiles",
    type=WorkflowSettings,
    default=WorkflowSettings(),
    description="Workflows (docs/workflows.md) in the form of maintenance-controller. `${NAME}` is an "
    "environment variable. Default: none.",
    after="coexist",
    form=Form(is_file=_is_file, mistakes=unknown_names, texts=_texts_at, idle=idle, secret=("notify",)),
)

SECTIONS = (PROFILES,)
