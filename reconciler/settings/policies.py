"""`events` and `conditions`: the policy for each of them, its defaults, and their sections."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from msgspec import Struct, field
from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from reconciler.model.event import Kind
from reconciler.model.values import replace
from reconciler.settings.fields import Duration, Flag, Section


class OutsideWindow(StrEnum):
    """What happens to an event while no window is open."""

    NEVER = "Never"
    """No drain starts outside a window, even at the deadline."""

    AT_DEADLINE = "AtDeadline"
    """The drain waits for a window that opens before the deadline, else it starts at the deadline."""

    IMMEDIATELY = "Immediately"
    """The drain starts at once."""


class Start(StrEnum):
    """When a drain starts for an event with a date."""

    LATE = "Late"
    """Shortly before the latest start: no node is empty for hours, and its place stays free for others."""

    EARLY = "Early"
    """As soon as windows and budget allow it."""


class Treatment(StrEnum):
    """What happens to a pod that loses data or does not come back when it is evicted."""

    KEEP = "Keep"
    """The pod stays. The other pods of the node are drained."""

    EVICT = "Evict"


class ConditionStatus(StrEnum):
    """A status of a node condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class UserInitiated(StrEnum):
    """What to do about an event that a user of the subscription started."""

    REPORT = "Report"
    DRAIN = "Drain"


class EventPolicy(Struct, frozen=True):
    """What to do about one kind of event, or one node condition, on one node.

    `min_duration`: shorter events are ignored, events of unknown duration are not. `lead_time`: the deadline
    for the start of a drain, before `not_before`. `status`: that of a condition which drains the node, and
    `for_`: how long the condition must have had it (0 for events). `start`: when a drain starts for an event
    with a date; None leaves it to who ends the maintenance. `ahead`: how long before its latest start a late
    drain may start. `of_features` has the keys of features (`PolicyKey`) that are not at their default.
    """

    drain: bool
    min_duration: timedelta = timedelta()
    lead_time: timedelta = timedelta()
    outside_window: OutsideWindow = OutsideWindow.AT_DEADLINE
    empty_dir: Treatment = Treatment.KEEP
    unmanaged_pods: Treatment = Treatment.KEEP
    status: ConditionStatus = ConditionStatus.TRUE
    for_: timedelta = timedelta()
    start: Start | None = None
    ahead: timedelta = timedelta(hours=1)
    of_features: Mapping[str, Any] = field(default_factory=dict)

    def says(self, key: str) -> bool:
        """Whether it has a key of a feature that is not at its default; never without the feature."""
        return key in self.of_features


_QUARTER = timedelta(
    minutes=15
)  # Azure's usual notice, so the drain starts as soon as the event is announced

DEFAULTS: dict[Kind, EventPolicy] = {
    Kind.FREEZE: EventPolicy(drain=False, lead_time=_QUARTER),
    Kind.LIVE_MIGRATION: EventPolicy(
        drain=False, lead_time=timedelta(minutes=10), outside_window=OutsideWindow.NEVER
    ),
    Kind.REBOOT: EventPolicy(drain=True, lead_time=_QUARTER),
    # The temporary disk is lost with the VM, so keeping a pod for its emptyDir saves nothing.
    Kind.REDEPLOY: EventPolicy(drain=True, lead_time=_QUARTER, empty_dir=Treatment.EVICT),
    Kind.PREEMPT: EventPolicy(
        drain=True,
        outside_window=OutsideWindow.IMMEDIATELY,
        empty_dir=Treatment.EVICT,
        unmanaged_pods=Treatment.EVICT,
    ),
    Kind.TERMINATE: EventPolicy(
        drain=True, lead_time=_QUARTER, empty_dir=Treatment.EVICT, unmanaged_pods=Treatment.EVICT
    ),
    Kind.REBALANCE: EventPolicy(drain=False),
    Kind.UNKNOWN: EventPolicy(drain=False),
}

LOST = (Kind.PREEMPT, Kind.TERMINATE)
"""Kinds after which the VM is gone, with all pods that are still on it."""

CONDITION_DEFAULT = EventPolicy(drain=True)
"""The default for a condition that the settings name: it drains the node."""


class Meaning(Section):
    """What the reconciler does about an event or a condition. Keys left out have the default of the kind.

    `of_features` has the keys that features bring, with their defaults.
    """

    of_features: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    drain: Flag | None = Field(
        default=None, description="Whether the node is drained. Default: see the table."
    )
    outside_window: OutsideWindow | None = Field(
        default=None,
        description="What happens while no window is open. Never: no start. AtDeadline: a start at the "
        "deadline. Immediately: a start at once. Default: see the table.",
    )
    empty_dir: Treatment | None = Field(
        default=None,
        description="What happens to a pod with an emptyDir. Keep: it stays. Evict: it is evicted. "
        "Default: see the table.",
    )
    unmanaged_pods: Treatment | None = Field(
        default=None,
        description="The same for a pod without a controller, which nothing would create again. Default: "
        "see the table.",
    )

    def over(self, below: EventPolicy) -> EventPolicy:
        """Return the policy `below`, with the keys that are set here replaced."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        changed = {name: value for name, value in given.items() if value is not None}
        if own := {name: changed.pop(name) for name in self.of_features if name in changed}:
            merged = {**below.of_features, **own}
            changed["of_features"] = {
                name: value for name, value in merged.items() if value != self.of_features[name]
            }
        return replace(below, **changed) if changed else below


class EventMeaning(Meaning):
    """What the reconciler does about one kind of event."""

    min_duration: Duration | None = Field(
        default=None, description="A shorter event is ignored; not one of unknown duration. Default: `0s`."
    )
    lead_time: Duration | None = Field(
        default=None,
        description="How long before `notBefore` the drain must have started: its deadline. Default: see "
        "the table.",
    )
    start: Start | None = Field(
        default=None,
        description="When a drain with a date starts. Late: `ahead` of its latest "
        "start. Early: as soon as windows and budget allow. Default: `Early` where the reconciler can end "
        "the case, as by an offer of the platform; else `Late`, also for failing hardware.",
    )
    ahead: Duration | None = Field(
        default=None, description="How long before its latest start a `Late` drain may start. Default: `1h`."
    )


FEWEST = 2
"""A condition of one node alone is no pattern, also where no other node is managed."""


def is_on_most(count: int, of: int) -> bool:
    """Whether a condition is on so many of the nodes that it drains that it is no sign of a fault."""
    return count >= FEWEST and count * 2 > of


def _as_text(value: object) -> object:
    """Return a boolean of YAML as the text that is meant: `status: False` needs no quotes."""
    return str(value) if isinstance(value, bool) else value


class ConditionMeaning(Meaning):
    """What the reconciler does about a node condition."""

    status: Annotated[ConditionStatus, BeforeValidator(_as_text)] | None = Field(
        default=None,
        description="The status that drains the node. Write False for a condition that is True on healthy "
        "nodes, such as `StorageReady`. Default: `True`.",
    )
    for_: Duration | None = Field(
        default=None, alias="for", description="How long the node must have had this status. Default: `0s`."
    )


def _pascal(name: str) -> str:
    return to_camel(name) if name == "user_initiated" else "".join(part.title() for part in name.split("_"))


class Events(Section):
    """What the reconciler does about each kind of event. Kinds left out have their defaults."""

    model_config = ConfigDict(alias_generator=_pascal)

    freeze: EventMeaning = Field(default_factory=EventMeaning, description="The VM pauses for some seconds.")
    live_migration: EventMeaning = Field(
        default_factory=EventMeaning,
        description="The VM moves to another host, with a pause of some seconds.",
    )
    reboot: EventMeaning = Field(
        default_factory=EventMeaning, description="The VM restarts. It keeps its disks."
    )
    redeploy: EventMeaning = Field(
        default_factory=EventMeaning, description="The VM moves to another host. Its temporary disk is lost."
    )
    preempt: EventMeaning = Field(
        default_factory=EventMeaning, description="A spot VM is evicted, with a notice of 30 s at most."
    )
    terminate: EventMeaning = Field(default_factory=EventMeaning, description="The VM is deleted.")
    rebalance: EventMeaning = Field(
        default_factory=EventMeaning,
        description="The cloud recommends to replace a spot instance that may be interrupted soon.",
    )
    unknown: EventMeaning = Field(
        default_factory=EventMeaning,
        description="An event that the reconciler cannot read. It is reported with its text.",
    )
    user_initiated: UserInitiated | None = Field(
        default=None,
        description="What happens when a user reboots or redeploys a VM. Report: it is only reported. "
        "Drain: it counts like the platform's. Default: `Report`.",
    )

    def of(self, kind: Kind) -> EventMeaning:
        """Return the settings of a kind."""
        meaning: EventMeaning = getattr(self, kind.name.lower())
        return meaning


class Meanings(Struct, frozen=True):
    """`events` and `conditions` in one place of the file; `path` is where that is, empty for the top."""

    events: Events
    conditions: Mapping[str, ConditionMeaning]
    path: str = ""

    def of(self, kind: Kind, condition: str) -> Meaning | None:
        """Return what stands there about a condition, or, without one, about a kind."""
        return self.conditions.get(condition) if condition else self.events.of(kind)


class NodePolicies(dict[tuple[Kind, str], EventPolicy | None]):
    """What events mean on some nodes, by kind and node condition; each is resolved when it is first read.

    An event of the platform has no condition. None means that the settings do not name the condition there.
    """

    def __init__(self, *given: Meanings) -> None:
        """Take what the top of the file says, then each override that selects the nodes."""
        super().__init__()
        self._given = given
        self.conditions = frozenset[str]().union(*(meanings.conditions for meanings in given))
        """The node conditions that the settings name there."""

        self._paths: dict[tuple[Kind, str, str], str] = {}

    def __missing__(self, key: tuple[Kind, str]) -> EventPolicy | None:
        """Return what an event of this kind, or about this condition, means."""
        kind, condition = key
        policy = self.of_condition(condition) if condition else self.of_kind(kind)
        # A record may name any condition: only those of the settings are kept.
        if policy is not None:
            self[key] = policy
        return policy

    def of_kind(self, kind: Kind) -> EventPolicy:
        """Return what an event of the platform means."""
        return reduce(lambda below, given: given.events.of(kind).over(below), self._given, DEFAULTS[kind])

    def of_condition(self, condition: str) -> EventPolicy | None:
        """Return what a condition means, None if the settings do not name it there."""
        meanings = [given.conditions[condition] for given in self._given if condition in given.conditions]
        if not meanings:
            return None
        return reduce(lambda below, meaning: meaning.over(below), meanings, CONDITION_DEFAULT)

    def path(self, kind: Kind, condition: str, field: str) -> str:
        """Return which key of the file decides a field of such a policy.

        For example `events.Reboot.emptyDir` for `empty_dir`, whether or not the file has that key. The last
        override that sets it wins. Empty if the settings do not name the condition there.
        """
        asked = (kind, condition, field)
        if asked in self._paths:
            return self._paths[asked]
        name = f"conditions.{condition}" if condition else f"events.{kind.value}"
        found = ""
        for given in self._given:
            meaning = given.of(kind, condition)
            if meaning is not None and (not found or getattr(meaning, field) is not None):
                found = f"{given.path}{name}.{to_camel(field)}"
        if found:
            self._paths[asked] = found
        return found

    @cached_property
    def user_initiated(self) -> UserInitiated:
        """What to do about an event that a user started."""
        given = [each.events.user_initiated for each in self._given if each.events.user_initiated is not None]
        return given[-1] if given else UserInitiated.REPORT
