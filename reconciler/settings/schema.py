"""The whole settings file as a tree of frozen values, and the policies that follow for a node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar
from zoneinfo import ZoneInfo

from msgspec import Struct
from pydantic import Field, PrivateAttr, create_model, model_validator
from pydantic.alias_generators import to_camel

from reconciler import plugins
from reconciler.calendar.windows import Calendar, NotAllowed, Window
from reconciler.model import limits
from reconciler.model.content import CalendarPlace, CalendarText, SettingsVersion
from reconciler.model.drains import HeldPods
from reconciler.model.event import REQUEST, Kind, MaintenanceEvent
from reconciler.model.grants import Grants
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys, keys_of
from reconciler.model.messages import MessageReceiver
from reconciler.model.node import HOSTED_LABEL, Node
from reconciler.model.selector import EVERYTHING, LabelSelector, Operator
from reconciler.model.values import replace
from reconciler.settings.draining import Adoptable, Budget, Coexist, Drain
from reconciler.settings.fields import ConditionType, Duration, Flag, Prefix, Section, Selector, Text, Zone
from reconciler.settings.mistakes import ChangedScalar, KeyWarning, Mistake, Mistakes
from reconciler.settings.mistakes import Path as KeyPath
from reconciler.settings.policies import (
    DEFAULTS,
    ConditionMeaning,
    EventMeaning,
    EventPolicy,
    Events,
    Meaning,
    Meanings,
    NodePolicies,
)
from reconciler.settings.profiles import DEFAULT_PROFILE
from reconciler.settings.times import (
    NotAllowedSettings,
    PassTimes,
    WindowSettings,
    ends_before_it_starts,
    times_of,
)


class Mode(StrEnum):
    """What the reconciler is allowed to do."""

    OBSERVE = "Observe"
    """Write nothing."""

    ENFORCE = "Enforce"
    FINISH = "Finish"
    """Start nothing new. Finish the drains that have started, and uncordon their nodes."""


class Uncordon(Section):
    """When a node is uncordoned."""

    settle: Duration = Field(
        default=timedelta(minutes=2), description="How long the event must be gone and the node Ready."
    )


class Keys(Section):
    """The names of the labels and annotations of the reconciler."""

    prefix: Prefix = Field(
        default=DEFAULT_PREFIX,
        description="Their prefix, a DNS name; one for each installation in a cluster.",
    )
    state_label: Flag = Field(
        default=True,
        description="Whether the labels `<keys.prefix>/state` and `<keys.prefix>/why` show a node's state, "
        "and what its maintenance is for. AKS Automatic denies them (docs/azure.md#9-aks-automatic).",
    )

    @property
    def names(self) -> OwnKeys:
        """All of them."""
        return keys_of(self.prefix)


class Override(Section):
    """Different settings for some nodes. Later entries win, key by key."""

    node_selector: Selector = Field(default=EVERYTHING, description="Its nodes. Default: all.")
    events: Events = Field(
        default_factory=Events, description="As `events`. Keys left out keep their values."
    )


class Origin(Struct, frozen=True):
    """Where settings are from: the version of their file, and its folder, where relative paths begin.

    A `foreign` file was written for another program, and is one section of ours (`Form`). `unlike` is what
    that program reads in another way in this section: the path, and both readings. `changed` are the texts
    there of which YAML has made another one. `meanings` say what each line of a file of another program means
    here, and `block` is what says the same in a file of ours. `rejected` says why the file can't be used: the
    settings are then the default ones, which nobody has chosen. `content` is what they were read from, with
    the names of variables and not their values.
    """

    version: SettingsVersion | None = None
    folder: Path | None = None
    foreign: bool = False
    unlike: tuple[tuple[KeyPath, str], ...] = ()
    changed: tuple[ChangedScalar, ...] = ()
    meanings: tuple[str, ...] = ()
    block: str = ""
    rejected: str = ""
    content: bytes = b""


T = TypeVar("T")


class Form(Struct, Generic[T], frozen=True, kw_only=True):
    """A section in the form of another program's file: `${NAME}` in it is an environment variable.

    `is_file` says whether the mapping of a whole file is one of that program, which is this section and
    nothing else. `mistakes` yields what is wrong in the content of the section where other mistakes keep it
    from being valid. `texts` returns the texts that a valid section has at a path of the file, and `idle` why
    a file with this section alone never does anything, empty if it does. No message shows what is below
    one of the keys `secret`.
    """

    is_file: Callable[[Mapping[str, object]], bool]
    mistakes: Callable[[object], Iterable[Mistake]]
    texts: Callable[[T, KeyPath], tuple[str, ...]]
    idle: Callable[[T], str]
    secret: tuple[str, ...] = ()


class Profiles(Struct, frozen=True):
    """What the profiles of a section mean to the rest of the program.

    `names` are those of the profiles, and `selected` returns those that a node with these labels has, also
    names that do not exist. `receivers` get their messages, `every` is the longest time between two passes,
    and `checks` are the types of their checks.
    """

    names: tuple[str, ...] = ()
    selected: Callable[[Mapping[str, str]], Collection[str]] = lambda _labels: ()
    receivers: tuple[MessageReceiver, ...] = ()
    every: timedelta | None = None
    checks: frozenset[str] = frozenset()


class FeatureSection(Struct, Generic[T], frozen=True, kw_only=True):
    """A section that a feature brings in the list SECTIONS of its `settings.py`.

    `type` is that of its value, with pydantic's limits, if any. It stands in the section `below` of the core,
    or beside these, and there behind the key `after` in the schema and on the page, or at the end. `form` is
    that of another program's file, if it has one. `secret`: a text in a wrong place there may be a secret. A
    subclass says what a section means beside its own value.
    """

    key: str
    type: Any
    default: T
    description: str
    below: str = ""
    after: str = ""
    form: Form[T] | None = None
    secret: bool = False

    def mistakes(self, settings: Settings) -> Iterable[Mistake]:
        """Return what is wrong with the whole settings although each section is valid."""
        return ()

    def warnings(self, settings: Settings, now: datetime) -> Iterable[KeyWarning]:
        """Return what to warn of at this moment (aware)."""
        return ()

    def explained(self, settings: Settings) -> Iterable[str]:
        """Return what the settings do in words: a heading and lines below it, or nothing."""
        return ()

    def selectors(self, settings: Settings) -> Iterable[LabelSelector]:
        """Return the selectors of nodes whose labels have to be read."""
        return ()

    def places(self, settings: Settings) -> Iterable[CalendarPlace]:
        """Return where calendars of others are."""
        return ()

    def rules(self, settings: Settings) -> Iterable[Window | NotAllowed]:
        """Return the windows and freezes beside those of the file."""
        return ()

    def grants(self, settings: Settings) -> Grants:
        """Return what to allow beyond `k8s/base`."""
        return Grants()

    def profiles(self, settings: Settings) -> Profiles:
        """Return what the profiles of the section mean."""
        return NO_PROFILES

    def sees(self, settings: Settings) -> bool:
        """Return whether it sees maintenance without a section below `sources`."""
        return False

    def holds_pods(self, settings: Settings) -> HeldPods | None:
        """Return how long annotations of pods hold their eviction, None if they hold nothing."""
        return None

    def of(self, settings: Settings) -> T:
        """Return the value of the section; without it in the settings, its default."""
        part = getattr(settings, self.below) if self.below else settings
        value: T = getattr(part, self.key, self.default)
        return value

    @property
    def path(self) -> str:
        """Its key with the section above it."""
        return f"{self.below}.{self.key}" if self.below else self.key


NO_PROFILES = Profiles()


class SourceSection(FeatureSection[T], frozen=True, kw_only=True):
    """A section below `sources` that a source brings in the list SECTIONS of its module.

    Its key is the name of the source. `karpenter_reads` says in words which events of it Karpenter reads
    itself and acts on; empty if none. `reads_conditions` are the types of node
    conditions that it reads as events, which the settings may not name.
    """

    below: str = "sources"
    karpenter_reads: str = ""
    reads_conditions: frozenset[str] = frozenset()


CONDITIONS = "conditions"
"""The key of the section with what node conditions mean, at the top and in each override."""


class ConditionsSection(FeatureSection[Mapping[str, ConditionMeaning]], frozen=True, kw_only=True):
    """The section `conditions`, brought by the source that reads the node conditions which it names.

    It stands in each override as well. Without such a source there is no such key, and no condition has a
    policy.
    """

    key: str = CONDITIONS
    type: Any = dict[ConditionType, ConditionMeaning]
    after: str = "events"

    def sees(self, settings: Settings) -> bool:
        """Return whether it names a condition."""
        return bool(settings.condition_types())


class PolicyWords(Struct, frozen=True):
    """What a policy says because of a key of a feature, in words; a part that it does not need is empty.

    `waits` is what a drain waits for, behind a comma, and `then` a sentence about what follows it. `ends` is
    how we then end the case (`replaced`), so that a drain may start early; `early` is a sentence about such a
    start, and `but` one about what the feature still needs.
    """

    waits: str = ""
    then: str = ""
    ends: str = ""
    early: str = ""
    but: str = ""


POLICY = "events.<Kind>"
"""Where a `PolicyKey` stands."""


class PolicyKey(FeatureSection[T], frozen=True, kw_only=True):
    """A key below each kind of event that a feature brings in the list SECTIONS of its `settings.py`.

    `type` is that of its value, and `description` does not say the default, which is that of all kinds.
    `conditions` says whether it also stands below each node condition. A subclass says what it means.
    """

    below: str = POLICY
    conditions: bool = False

    def in_policy(self, policy: EventPolicy) -> T:
        """Return its value in a policy."""
        value: T = policy.of_features.get(self.key, self.default)
        return value

    def given(self, settings: Settings) -> Iterator[tuple[KeyPath, T]]:
        """Yield each value that the file has for it, with the path there."""
        for path, meaning in settings.meanings():
            if (value := getattr(meaning, self.key, None)) is not None:
                yield (*path, to_camel(self.key)), value

    def words(self, policy: EventPolicy, settings: Settings) -> PolicyWords:
        """Return what a policy that drains says because of it."""
        return PolicyWords()


class Sources(Section):
    """Where the reconciler learns of maintenance."""


class Settings(Section):
    """The settings file as the core knows it. `Settings()` is the value of an empty file: every default.

    A loaded file is of the type `whole_settings()`, which has the sections of features as well.
    """

    api_version: Literal["node-maintenance.dev/v1alpha1"] = Field(
        default="node-maintenance.dev/v1alpha1", description="The format."
    )
    kind: Literal["MaintenancePolicy"] = Field(default="MaintenancePolicy", description="The kind.")
    mode: Mode = Field(
        default=Mode.OBSERVE,
        description="What the reconciler may do. Observe: only report, and leave nodes in maintenance "
        "cordoned. Enforce: cordon, drain and uncordon nodes. Finish: start nothing new, but end what has "
        "begun, up to the uncordon.",
    )
    cluster: Text = Field(
        default="",
        max_length=100,
        description="The name of the cluster in every output, message, Event and metric. Default: its name "
        "in the kubeconfig. In a Pod: what its nodes say (the labels kubernetes.azure.com/cluster, without "
        "the rest of MC_GROUP_CLUSTER_REGION, and alpha.eksctl.io/cluster-name, the annotation "
        "cluster.x-k8s.io/cluster-name), else the address of the API server.",
    )
    node_selector: Selector = Field(default=EVERYTHING, description="The managed nodes. Default: all.")
    time_zone: Zone = Field(
        default=ZoneInfo("UTC"), description="The time zone of output, and of times without their own."
    )
    sources: Sources = Field(
        default_factory=Sources, description="Where the reconciler learns of maintenance."
    )
    events: Events = Field(
        default_factory=Events, description="What the reconciler does about each kind of event."
    )
    windows: tuple[WindowSettings, ...] = Field(
        default=(),
        max_length=limits.INSTANCES,
        description="When drains may start: inside any window that selects the node, at any time if none "
        "does. See docs/windows.md.",
    )
    not_allowed: tuple[NotAllowedSettings, ...] = Field(
        default=(),
        max_length=limits.INSTANCES,
        description="When drains may not start, except at a deadline. It wins over `windows`. Default: none.",
    )
    budget: Budget = Field(
        default_factory=Budget, description="How many nodes may be out of service at once."
    )
    passes: PassTimes = Field(
        default_factory=PassTimes, description="When `serve` makes a pass although nothing has changed."
    )
    drain: Drain = Field(default_factory=Drain, description="How nodes are drained.")
    uncordon: Uncordon = Field(default_factory=Uncordon, description="When a node is uncordoned.")
    adopt: tuple[Adoptable, ...] = Field(
        default=(), description="Tools whose cordons are adopted. Default: none."
    )
    coexist: Coexist = Field(default_factory=Coexist, description="Other tools that drain nodes.")
    keys: Keys = Field(default_factory=Keys, description="The names of labels and annotations.")
    overrides: tuple[Override, ...] = Field(
        default=(),
        max_length=limits.INSTANCES,
        description="Other settings for some nodes. Later entries win, key by key. Default: none.",
    )

    of_features: ClassVar[tuple[FeatureSection[Any], ...]] = ()

    _origin: Origin = PrivateAttr(default_factory=Origin)
    _texts: Mapping[str, CalendarText] = PrivateAttr(default={})
    _with_texts: Settings | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _features_agree(self) -> Settings:
        if found := tuple(mistake for part in self.of_features for mistake in part.mistakes(self)):
            raise Mistakes(found)
        return self

    @model_validator(mode="after")
    def _moments_in_order(self) -> Settings:
        found = []
        for key, entries in (("windows", self.windows), ("notAllowed", self.not_allowed)):
            for index, entry in enumerate(entries):
                mistake = ends_before_it_starts(entry, entry.time_zone or self.time_zone)
                if mistake is not None:
                    found.append(Mistake((key, index, *mistake.path), mistake.message))
        if found:
            raise Mistakes(tuple(found))
        return self

    def __copy__(self) -> Settings:
        """Copy without what was computed once, because `model_copy(update=…)` may change what it is from."""
        copied = super().__copy__()
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        copied._with_texts = None
        return copied

    @property
    def origin(self) -> Origin:
        """Where these settings are from."""
        return self._origin

    def read_from(self, origin: Origin) -> Settings:
        """Return the same settings, as read from there."""
        copy = self.model_copy()
        copy._origin = origin
        return copy

    @property
    def version(self) -> SettingsVersion | None:
        """Which file these settings are from, None for settings that were not loaded from a file."""
        return self._origin.version

    @property
    def rejected(self) -> str:
        """Why the file can't be used, where these are the default settings instead; else empty."""
        return self._origin.rejected

    @property
    def idle(self) -> str:
        """Why a file of another program never does anything, with the key of its section; else empty."""
        forms = ((part, part.form) for part in self.of_features if part.form and self._origin.foreign)
        reasons = (f"{part.key}: {why}" for part, form in forms if (why := form.idle(part.of(self))))
        return next(reasons, "")

    @cached_property
    def profile_names(self) -> tuple[str, ...]:
        """The names of the profiles of features, with that of nodes without a label; none without one."""
        names = [name for profiles in self._profiles for name in profiles.names]
        return tuple(dict.fromkeys([DEFAULT_PROFILE, *names])) if names else ()

    def profiles_of(self, labels: Mapping[str, str]) -> frozenset[str]:
        """Return the profiles that a node with these labels has. Names that do not exist are left out."""
        wanted = frozenset[str]().union(*(profiles.selected(labels) for profiles in self._profiles))
        return wanted.intersection(self.profile_names)

    @property
    def receivers(self) -> tuple[MessageReceiver, ...]:
        """Where the messages of profiles go."""
        return tuple(receiver for profiles in self._profiles for receiver in profiles.receivers)

    @property
    def every(self) -> timedelta | None:
        """The longest time between two passes, None if the settings say nothing of it."""
        return min((profiles.every for profiles in self._profiles if profiles.every), default=None)

    @property
    def profile_checks(self) -> frozenset[str]:
        """The types of the checks that profiles of features have."""
        return frozenset[str]().union(*(profiles.checks for profiles in self._profiles))

    @cached_property
    def _profiles(self) -> tuple[Profiles, ...]:
        each = (part.profiles(self) for part in self.of_features)
        return tuple(profiles for profiles in each if profiles is not NO_PROFILES)

    def calendar_places(self) -> tuple[CalendarPlace, ...]:
        """Return where the content of each calendar of others is, in order."""
        return tuple(place for part in self.of_features for place in part.places(self))

    @property
    def calendar_texts(self) -> Mapping[str, CalendarText]:
        """What was read of the calendars, by their names."""
        return self._texts

    def with_calendars(self, texts: Mapping[str, CalendarText]) -> Settings:
        """Return the same settings with what was read of their calendars, by the names of these.

        The same texts give the same object, so that what it has computed of the calendar is kept.
        """
        if self._texts == texts:
            return self
        kept = self._with_texts
        if kept is None or kept._texts != texts:
            kept = self.model_copy()
            kept._texts = dict(texts)
            self._with_texts = kept
        return kept

    def in_fleet(self, labels: Mapping[str, str]) -> bool:
        """Return whether `nodeSelector` selects a node with these labels."""
        return self.node_selector.matches(labels)

    def manages(self, labels: Mapping[str, str]) -> bool:
        """Return whether such a node is managed: selected, without the ignore label, and not AKS's own."""
        ignored = labels.get(self.keys.names.ignore) == "true" or HOSTED_LABEL in labels
        return self.in_fleet(labels) and not ignored

    @cached_property
    def _read_by_karpenter(self) -> Mapping[str, str]:
        parts = (part for part in self.of_features if isinstance(part, SourceSection))
        return {part.key: part.karpenter_reads for part in parts if part.karpenter_reads}

    def waits_for_karpenter(self, event: MaintenanceEvent, node: Node) -> bool:
        """Whether Karpenter has begun to replace the node, and so handles this event.

        It does not know the requests in our own annotation. A node that is cordoned is in a maintenance that
        began before, such as ours, and Karpenter taints it too when we delete its NodeClaim.
        """
        begun = node.is_karpenter and node.is_disrupted and not node.unschedulable
        known = REQUEST not in event.sources and not self._read_by_karpenter.keys().isdisjoint(event.sources)
        return self.coexist.karpenter.leave is None and begun and known

    @property
    def left_to_karpenter(self) -> str:
        """What is left to Karpenter, in words."""
        leave, known = self.coexist.karpenter.leave, self._read_by_karpenter.values()
        if leave is None and known:
            return f"{', '.join(known)} on nodes that it replaces, until their latest start"
        return ", ".join(leave or ()) or "nothing"

    def policies(self, labels: Mapping[str, str]) -> NodePolicies:
        """Return what each event means on a node with these labels.

        Nodes that the same overrides select have the same policies, which are resolved once.
        """
        by_label, others = self._overrides_by_label
        candidates = others.union(*(by_label[label] for label in labels.items() if label in by_label))
        selected = tuple(
            index for index in sorted(candidates) if self.overrides[index].node_selector.matches(labels)
        )
        policies = self._policies.get(selected)
        if policies is None:
            overrides = [(index, self.overrides[index]) for index in selected]
            policies = self._policies[selected] = NodePolicies(
                Meanings(self.events, conditions_in(self)),
                *(
                    Meanings(each.events, conditions_in(each), f"overrides[{index}].")
                    for index, each in overrides
                ),
            )
        return policies

    @cached_property
    def _policies(self) -> dict[tuple[int, ...], NodePolicies]:
        return {}

    @cached_property
    def _overrides_by_label(self) -> tuple[Mapping[tuple[str, str], set[int]], set[int]]:
        """The overrides by a label that each demands, and those that demand none.

        With it a node costs the overrides of its own labels, and not all of them.
        """
        by_label: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        others: set[int] = set()
        for index, override in enumerate(self.overrides):
            demanded = (each for each in override.node_selector.requirements if each.operator == Operator.IN)
            if (label := next(demanded, None)) is None:
                others.add(index)
            else:
                for value in label.values:
                    by_label[label.key, value].add(index)
        return by_label, others

    @cached_property
    def held_pods(self) -> HeldPods | None:
        """How long annotations of pods hold their eviction, None if they hold nothing."""
        found = (part.holds_pods(self) for part in self.of_features)
        return next((held for held in found if held is not None), None)

    def condition_types(self) -> frozenset[str]:
        """Return every condition type in the settings, overrides included."""
        return frozenset(conditions_in(self)).union(*map(conditions_in, self.overrides))

    def says(self, key: str) -> bool:
        """Return whether any event or condition has a key of a feature, not at its default, on any node."""
        return any(
            getattr(meaning, key, None) not in (None, meaning.of_features.get(key))
            for _, meaning in self.meanings()
        )

    def label_keys(self) -> frozenset[str]:
        """Return the keys of all labels that node selectors use. A reader of nodes may drop the others."""
        selectors = [self.node_selector, *(override.node_selector for override in self.overrides)]
        selectors += [times.node_selector for times in (*self.windows, *self.not_allowed)]
        selectors += [selector for part in self.of_features for selector in part.selectors(self)]
        return frozenset(one.key for selector in selectors for one in selector.requirements)

    def meanings(self) -> Iterator[tuple[KeyPath, Meaning]]:
        """Yield what the file says about each event and condition, also in overrides, with the path of it."""
        tops: list[tuple[KeyPath, Settings | Override]] = [((), self)]
        tops += [(("overrides", index), override) for index, override in enumerate(self.overrides)]
        for path, top in tops:
            yield from ((((*path, "events", kind.value), top.events.of(kind))) for kind in Kind)
            yield from (((*path, CONDITIONS, name), meaning) for name, meaning in conditions_in(top).items())

    def draining(self) -> Iterator[tuple[str, Kind, EventPolicy]]:
        """Yield each policy that drains, with the key of its events: the base, and each override over it."""
        for kind in Kind:
            base = self.events.of(kind).over(DEFAULTS[kind])
            places = [("events", base)]
            for index, override in enumerate(self.overrides):
                changed = override.events.of(kind).over(base)
                if changed != base:
                    places.append((f"overrides[{index}].events", changed))
            yield from ((key, kind, policy) for key, policy in places if policy.drain)

    @property
    def policy_keys(self) -> tuple[PolicyKey[Any], ...]:
        """The keys that features bring for each kind of event."""
        return tuple(part for part in self.of_features if isinstance(part, PolicyKey))

    @cached_property
    def calendar(self) -> Calendar:
        """The windows, and the times that are not allowed."""
        zone = self.time_zone
        windows = [
            Window(each.name or each.title(zone), times_of(each, each.time_zone or zone), each.node_selector)
            for each in self.windows
        ]
        freezes = [
            NotAllowed(
                each.name or each.title(zone),
                times_of(each, each.time_zone or zone),
                each.reason,
                each.absolute,
                each.node_selector,
            )
            for each in self.not_allowed
        ]
        rules = [rule for part in self.of_features for rule in part.rules(self)]
        return Calendar(
            [*windows, *(rule for rule in rules if isinstance(rule, Window))],
            [*freezes, *(rule for rule in rules if isinstance(rule, NotAllowed))],
        )


def conditions_in(place: Settings | Override) -> Mapping[str, ConditionMeaning]:
    """Return what the top of the file or an override says about node conditions, by their type."""
    found: Mapping[str, ConditionMeaning] = getattr(place, CONDITIONS, {})
    return found


@cache
def whole_settings() -> type[Settings]:
    """Return the type of the whole file: the settings of the core with the sections of all features.

    Raises PluginError if a plugin that is installed brings a section that exists, ValueError if one of the
    program does, and if there is no section below which or no key behind which one should stand.
    """
    cores: dict[str, type[Section]] = {"": Settings, POLICY: EventMeaning}
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            cores[name] = field.annotation
    of_core = [f"{below}.{key}".lstrip(".") for below, core in cores.items() for key in core.model_fields]
    modules = tuple(plugins.modules("settings"))
    brought = [(plugins.file_of(module), module.SECTIONS) for module in modules]
    plugins.by_name(
        "section",
        [
            ("reconciler/settings/schema.py", of_core),
            *((file, [section.path for section in sections]) for file, sections in brought),
        ],
        str,
    )
    sections: list[FeatureSection[Any]] = []
    for file, given in brought:
        for section in given:
            if section.below not in cores:
                raise ValueError(f"{file}: {section.key} is below {section.below}: no such section")
            places = [cores[section.below]]
            places += [ConditionMeaning] if isinstance(section, PolicyKey) and section.conditions else []
            if section.after and any(section.after not in place.model_fields for place in places):
                raise ValueError(f"{file}: {section.key} is after {section.after}: no such key")
            sections.append(section)
    keys = [section for section in sections if isinstance(section, PolicyKey)]
    # Of two behind the same key, the later one stands next to it.
    keys.reverse()
    of_conditions = [key for key in keys if key.conditions]
    meaning: Any = _with_sections(ConditionMeaning, of_conditions)
    meaning.of_features = {key.key: key.default for key in of_conditions}
    by_type: Any = dict[ConditionType, meaning]
    sections = [
        replace(section, type=by_type) if isinstance(section, ConditionsSection) else section
        for section in sections
    ]
    fields = _with_keys(keys, [section for section in sections if isinstance(section, ConditionsSection)])
    belows = dict.fromkeys(section.below for section in sections if section.below not in ("", POLICY))
    for name in belows:
        part = _with_sections(cores[name], [each for each in sections if each.below == name])
        fields[name] = part, Field(default=part(), description=Settings.model_fields[name].description)
    built = _with_sections(Settings, [each for each in sections if not each.below], **fields)
    built.of_features = tuple(sections)
    # The parts are built with the whole, and not each by itself before.
    built.model_rebuild(force=True)
    return built


M = TypeVar("M", bound=Section)


def _with_keys(
    keys: Sequence[PolicyKey[Any]], conditions: Sequence[ConditionsSection]
) -> dict[str, tuple[Any, Any]]:
    """Return the fields `events` and `overrides` of the settings, with these keys of each kind of event."""
    event = _with_sections(EventMeaning, keys)
    event.of_features = {key.key: key.default for key in keys}
    kinds = [name for name, field in Events.model_fields.items() if field.annotation is EventMeaning]
    events = _with_fields(Events, {name: (event, _section_of(Events, name, event)) for name in kinds})
    in_override = [
        replace(each, description=f"As `{each.key}`. Keys left out keep their values. Default: none.")
        for each in conditions
    ]
    override: Any = _with_sections(
        Override, in_override, events=(events, _section_of(Override, "events", events))
    )
    overrides: Any = tuple[override, ...]
    return {
        "events": (events, _section_of(Settings, "events", events)),
        "overrides": (overrides, copy(Settings.model_fields["overrides"])),
    }


def _section_of(base: type[Section], name: str, section: type[Section]) -> Any:
    """Return the field of a section in the place of another one, with its description."""
    return Field(default_factory=section, description=base.model_fields[name].description)


def _with_sections(base: type[M], sections: Iterable[FeatureSection[Any]], **fields: Any) -> type[M]:
    """Return the type with these sections as well, each in its place."""
    order = list(base.model_fields)
    for section in sections:
        if isinstance(section, PolicyKey):
            default = str(section.default).lower() if isinstance(section.default, bool) else section.default
            described = f"{section.description} Default: `{default}`."
            # What the file does not say is said by another place of the file, or by the default.
            fields[section.key] = section.type | None, Field(default=None, description=described)
        else:
            fields[section.key] = (
                section.type,
                Field(default=section.default, description=section.description),
            )
        order.insert(order.index(section.after) + 1 if section.after else len(order), section.key)
    built = _with_fields(base, fields)
    built.__pydantic_fields__ = {name: built.__pydantic_fields__[name] for name in order}
    return built


def _with_fields(base: type[M], fields: Mapping[str, Any]) -> type[M]:
    """Return the type with these fields, each with its type and what pydantic knows of it."""
    return create_model(
        base.__name__, __base__=base, __doc__=base.__doc__, __cls_kwargs__={"defer_build": True}, **fields
    )
