"""The schedule: in which order and when the drains of cases start, and which can't be served in time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum

from msgspec import Struct

from reconciler.model.event import Kind
from reconciler.model.findings import FindingCode
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text

_NEVER = datetime.max.replace(tzinfo=UTC)


class Urgency(Struct, frozen=True):
    """How soon a node has to be drained for its most urgent event.

    An event that has started comes first, because its VM may go at any moment. Then come dates that can't be
    read, which may mean any moment too, then deadlines (`notBefore` minus the lead time, UTC), then events
    without a date. Of two equal ones the more disruptive kind comes first.
    """

    kind: Kind = Kind.UNKNOWN
    deadline: datetime | None = None
    started: bool = False
    date_unreadable: bool = False

    @property
    def key(self) -> tuple[bool, bool, datetime, int]:
        """The sort key: what is smaller comes first."""
        unreadable = self.date_unreadable and not self.started
        deadline = None if unreadable else self.deadline
        return (not self.started, not unreadable, deadline or _NEVER, -self.kind.severity)

    def __str__(self) -> str:
        """Return it as text, such as `deadline 2026-11-21T13:45:00Z`."""
        if self.started:
            return f"{self.kind} has started"
        if self.date_unreadable:
            return f"{self.kind} with a date that can't be read"
        if self.deadline is not None:
            return f"deadline {to_text(self.deadline)}"
        return f"{self.kind} without a date"


LEAST_URGENT = Urgency()
"""Of a node without an event that requires a drain."""


class StartTimes(Struct, frozen=True):
    """When a drain for one event may start, by its date, its policy and the calendar. All moments are UTC.

    No drain starts before `earliest`. `latest` is the last moment, not after `deadline`, at which windows and
    freezes allow a start and leave the lead time; None if the event has no date, or if there is no such
    moment. `never` says why the calendar allows no start in time, empty if it does, and `remedy` what would
    allow one. `kept` says which person keeps the drain from an earlier start, empty if nobody does. Without
    an end of that, `earliest` is the last moment of the calendar.
    """

    earliest: datetime
    latest: datetime | None = None
    deadline: datetime | None = None
    never: str = ""
    remedy: str = ""
    kept: str = ""


class Exemption(Struct, frozen=True):
    """From when on a drain for one event, or for all events of a node, does without something (UTC).

    `places`: it needs no free place of the budget, and its start is not planned. `spacing`: it keeps no
    distance to other starts. `slots`: it takes no drain slot. `windows`: it starts outside of windows.
    `freezes`: it then starts in an absolute freeze, too. None: it never does without.
    """

    places: datetime | None = None
    spacing: datetime | None = None
    slots: datetime | None = None
    windows: datetime | None = None
    freezes: datetime | None = None

    @staticmethod
    def of_all(exemptions: Iterable[Exemption]) -> Exemption:
        """Return what a drain for all of these events does without: the first event that allows it counts."""
        exemptions = tuple(exemptions)
        if len(exemptions) <= 1:
            return exemptions[0] if exemptions else Exemption()
        return Exemption(
            *(
                min((at for each in exemptions if (at := getattr(each, name)) is not None), default=None)
                for name in Exemption.__struct_fields__
            )
        )


HELD_BY = "held by "
"""The begin of the cause of a miss that comes from a check, before the name of the check."""

PODS_STAY = "pods stay"
"""The begin of the cause of a miss that comes from pods that no eviction removes."""


class ObstacleCode(StrEnum):
    """What keeps a pod on its node or from any other, the worst first.

    Documents show the values; those of findings agree.
    """

    BUDGET_NEVER = FindingCode.BUDGET_NEVER.value
    BUDGET_UNCOUNTED = FindingCode.BUDGET_UNCOUNTED.value
    TWO_BUDGETS = FindingCode.TWO_BUDGETS.value
    TERMINATING = FindingCode.TERMINATING.value
    BUDGET_NOW = FindingCode.BUDGET_NOW.value
    NO_ROOM = FindingCode.NO_ROOM.value
    """Its replacement can run on no other node."""

    WAITS = FindingCode.WAITS.value
    LONG_GRACE = "longGrace"

    @property
    def certain(self) -> bool:
        """Whether it does not change by itself."""
        order = tuple(ObstacleCode)
        return order.index(self) <= order.index(ObstacleCode.TERMINATING)


class CaseForecast(StrEnum):
    """Whether the node of a case is drained in time, as things stand. Documents show the values."""

    WILL_BE_MISSED = "will be missed"
    """It is not drained before its date, unless somebody changes what keeps it."""

    AT_RISK = "at risk"
    """It may not be drained before its date: that depends on what may or may not change by itself."""

    UNKNOWN = "unknown"
    """What could keep it was not read."""

    ON_TRACK = "on track"
    """Nothing is known that keeps it."""


class DrainObstacle(Struct, frozen=True):
    """Why pods stay on a node although its drain evicts them, or can run on no other node.

    `pod` (`namespace/name`) is the first of `pods` such pods. `owner` is their workload in words, empty if
    it has none, and `budgets` the PodDisruptionBudgets that refuse (`namespace/name`). `because` says why
    they stay, and `remedy` what would help; each of the `commands` is one way to do that.
    """

    code: ObstacleCode
    pod: str
    owner: str
    because: str
    remedy: str
    budgets: tuple[str, ...] = ()
    pods: int = 1
    commands: tuple[str, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether they stay as things stand."""
        return self.code.certain

    @property
    def cause(self) -> str:
        """What the obstacle comes from, the same text as long as it is the same."""
        return f"{PODS_STAY}: {self.code} {', '.join(self.budgets) or self.owner or self.pod}"

    def __str__(self) -> str:
        """Return the obstacle as a sentence that names pod, owner and budget."""
        more = f" and {self.pods - 1} more" if self.pods > 1 else ""
        owner = f" ({self.owner})" if self.owner else ""
        stays = "can't be evicted" if self.budgets else "may stay"
        if self.code is ObstacleCode.NO_ROOM:
            stays = "can't run elsewhere"
        return f"{self.pod}{more}{owner} {stays}: {self.because}"


class Prospect(Struct, frozen=True):
    """Whether the drain of a case can end: what keeps pods on the node, those that are certain first.

    `unknown` says why this is not known, empty if it is. `pods` is how many pods the drain moves, counted
    only in mode Observe, where they stay; None: not known.
    """

    obstacles: tuple[DrainObstacle, ...] = ()
    unknown: str = ""
    pods: int | None = None

    @property
    def words(self) -> str:
        """The first obstacle with its remedy, and how many more there are; empty without one."""
        if not self.obstacles:
            return ""
        first = self.obstacles[0]
        more = len(self.obstacles) - 1
        others = f" ({count_of(more, 'more reason')})" if more else ""
        return f"{first}{others}. {first.remedy}"


class CaseSchedule(Struct, frozen=True):
    """The plan for one node with a case. All moments are UTC.

    `planned_start` is when its drain starts if nothing changes; it is in the past if the drain has started,
    and None if no moment is known. `latest_start` is the last allowed moment before the deadline, and the
    deadline once the drain has begun, None if the case has no date. `window` names the windows that the
    planned start uses, None if it uses none. `missed`: the node will not be drained in time. `because` says
    why the start is planned for this moment; for a miss it says why, and what would help. `ends` is when the
    node is expected back, None if that is unknown. `plan_from` and `plan_until` are the days of a plan that
    names no moment: such a plan starts nothing. `cause` is what a miss comes from, the same text as long as
    the reason is the same. `started`: the drain has begun, and `planned_start` is when it did.
    `forecast_until` is when a forecast may change although nothing happens, because a case that is planned
    for now is held, or a window ends; None if it is not. `with_node` is the node with whose drain this one
    starts together, because both run pods of one group, and empty if there is none; `alone` is then when it
    would start without that. `stopped` says who has stopped its drain, and how that ends, empty if nobody
    has. `observed`: the mode is Observe, so nothing of it starts. `prospect` is whether
    its drain can end; what is certain to keep a case with a date makes it `missed`. `ending` says who ends
    the maintenance of the drained node, and for a case that only the platform ends why; empty if the settings
    leave it to the platform. `comes_back` is False for a node whose VM the platform takes for good: `ends` is
    None then. `remedies` are the commands by which a person lets the drain of a missed case begin in time.
    """

    planned_start: datetime | None = None
    latest_start: datetime | None = None
    window: str | None = None
    missed: bool = False
    because: str = ""
    ends: datetime | None = None
    plan_from: datetime | None = None
    plan_until: datetime | None = None
    cause: str = ""
    started: bool = False
    forecast_until: datetime | None = None
    with_node: str = ""
    alone: datetime | None = None
    observed: bool = False
    stopped: str = ""
    prospect: Prospect = Prospect()
    ending: str = ""
    comes_back: bool = True
    remedies: tuple[str, ...] = ()

    @property
    def offer(self) -> str:
        """What lets its drain begin, to follow why it is missed; empty if nothing does."""
        return f"; {self._ways} lets its drain begin" if self.remedies else ""

    @property
    def who_starts(self) -> str:
        """Who can let its drain begin, and how; empty if nobody can."""
        return f"whoever is on call: {self._ways}" if self.remedies else ""

    @property
    def _ways(self) -> str:
        return " or ".join(f"`{command}`" for command in self.remedies)

    @property
    def outlook(self) -> str:
        """Whether the node will be drained in time, in a sentence: why not, or when its drain starts."""
        if self.missed:
            return f"the node will not be drained in time: {self.because}"
        if self.forecast is not CaseForecast.ON_TRACK:
            return f"the node may be drained in time after all: {self.forecast_words}"
        if self.started or self.planned_start is None:
            return f"the node will be drained in time after all: {self.because}"
        return (
            f"the node will be drained in time after all: its drain starts at {to_text(self.planned_start)}"
        )

    @property
    def by_pods(self) -> bool:
        """Whether it is missed because pods stay on the node, and not because its drain starts too late."""
        return self.missed and self.cause.startswith(PODS_STAY)

    @property
    def forecast(self) -> CaseForecast:
        """Whether the node is drained in time. Everything that people and programs see follows from it."""
        if self.missed:
            return CaseForecast.WILL_BE_MISSED
        if self.prospect.obstacles:
            return CaseForecast.AT_RISK
        return CaseForecast.UNKNOWN if self.prospect.unknown else CaseForecast.ON_TRACK

    @property
    def forecast_words(self) -> str:
        """Why the node may not be drained in time, empty if it is on track."""
        return self.because if self.missed else self.prospect.words or self.prospect.unknown
