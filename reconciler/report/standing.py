"""What a node is, in one word: the same one in each output."""

from __future__ import annotations

from enum import StrEnum

from reconciler.model.case_outcome import CaseResult
from reconciler.model.holds import NOT_CLAIMED
from reconciler.model.plan import NodePlan
from reconciler.model.record import State
from reconciler.model.schedule import CaseForecast
from reconciler.report.kinds import hold_kinds


class Standing(StrEnum):
    """What a node is, the most urgent first. Documents show the values, so they never change.

    *Waits* is for a time or a place, and ends by itself; *held* is by a person; *blocked* by a pod, a budget,
    a webhook, or whatever else somebody has to repair.
    """

    WILL_BE_MISSED = "will be missed"
    MISSED = "missed"
    UNGUARDED = "unguarded"
    BLOCKED = "blocked"
    AT_RISK = "at risk"
    HELD = "held"
    WAITS = "waits"
    """No moment is known for the start of its drain."""

    PLANNED = "planned"
    DRAINING = "draining"
    DRAINED = "drained"
    REPORTED = "reported"
    """The platform's plan names days and no moment: it starts nothing."""

    NO_DRAIN = "no drain"
    """What is announced requires none."""

    UNKNOWN = "unknown"
    """A source can't be read, and no other one announces anything."""

    QUIET = "quiet"

    @property
    def urgency(self) -> int:
        """The place in the order of urgency, the most urgent first."""
        return _ORDER.index(self)

    @property
    def alarms(self) -> bool:
        """Whether a person has to act now, or should have."""
        return self in (Standing.WILL_BE_MISSED, Standing.MISSED, Standing.UNGUARDED, Standing.BLOCKED)


_ORDER = tuple(Standing)


def ends_by_itself(code: str, *, requested: bool = False) -> bool:
    """Return whether a hold of this code ends without a person in the ordinary course of things.

    `requested` is whether a person requested the maintenance: then a person ends it.
    """
    kind = hold_kinds().get(code)
    return (kind is not None and kind.by_itself) or (code == "eventsGone" and not requested)


def kind_of_hold(code: str, *, by_itself: bool = False) -> Standing:
    """Return whether a hold of this code is one by a person, one that waits, or one that blocks.

    `by_itself` is whether the hold itself says that it ends without a person.
    """
    kind = hold_kinds().get(code)
    if kind is None:
        return Standing.BLOCKED
    if kind.by_person:
        return Standing.HELD
    return Standing.WAITS if by_itself or kind.waits or ends_by_itself(code) else Standing.BLOCKED


def words_for(node: NodePlan) -> frozenset[str]:
    """Return each word that is true of the node: what it is, and what its holds do."""
    words = {
        standing(node).value,
        *(kind_of_hold(hold.code, by_itself=hold.by_itself).value for hold in node.holds),
    }
    if node.status.instructions.hold is not None:
        words.add(Standing.HELD.value)
    if Standing.WILL_BE_MISSED.value in words:
        words.add(Standing.MISSED.value)
    return frozenset(words)


def standing(node: NodePlan) -> Standing:
    """Return what a node of a plan is."""
    schedule, outcome, unguarded = node.schedule, node.outcome, node.unguarded
    if schedule is not None and schedule.missed:
        return Standing.WILL_BE_MISSED
    if outcome is not None and outcome.result is CaseResult.MISSED:
        return Standing.MISSED
    if unguarded is not None:
        return Standing.UNGUARDED
    kinds = {kind_of_hold(hold.code, by_itself=hold.by_itself) for hold in node.holds}
    if any(hold.code == NOT_CLAIMED.code for hold in node.holds):
        return Standing.HELD
    drained = outcome is not None and outcome.drained is not None
    if schedule is not None and schedule.stopped:
        return Standing.HELD
    if node.before is State.IN_MAINTENANCE:
        at_risk = schedule is not None and schedule.forecast is CaseForecast.AT_RISK
        if not drained and (at_risk or Standing.BLOCKED in kinds):
            return Standing.BLOCKED
        return Standing.DRAINED if drained else Standing.DRAINING
    if schedule is not None and schedule.forecast is CaseForecast.AT_RISK:
        return Standing.AT_RISK
    start = schedule.planned_start if schedule is not None else None
    stays = {hold.code for hold in node.holds} & {"notHeld", "notStopped"}
    if stays or node.status.instructions.hold is not None or (Standing.HELD in kinds and start is None):
        return Standing.HELD
    if Standing.BLOCKED in kinds:
        return Standing.BLOCKED
    if start is not None:
        return Standing.PLANNED
    if schedule is not None and schedule.plan_from is not None:
        return Standing.REPORTED
    if schedule is not None or node.holds:
        return Standing.WAITS
    if node.events:
        return Standing.NO_DRAIN
    return Standing.UNKNOWN if node.status.unread else Standing.QUIET
