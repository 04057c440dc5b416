"""What has become of a case: a fact, computed here and nowhere else, from what its record says happened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from reconciler.model.moments import to_text
from reconciler.model.record import CaseRecord, KnownEvent, PlatformStart, Uncordoned
from reconciler.model.values import replace

CANCELLED = "cancelled: the event did not start"
"""In words that an event did not start."""


class InTime(StrEnum):
    """Whether a node was drained in time. Lines of a log show the values."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class CaseResult(StrEnum):
    """The outcome of a case. Reports and objects of features show the values, so they never change."""

    RUNNING = "running"
    DRAINED = "drained"
    """The node was empty before its maintenance."""

    LATE = "late"
    """The node was drained after the date of its event, or after the platform had started."""

    MISSED = "missed"
    """The platform started while pods that the drain had to evict were on the node."""

    CANCELLED = "cancelled"
    """The event went away before it started, or was put off."""

    STOPPED = "stopped"
    """The case ended while its event was still announced, such as after somebody's uncordon."""

    @property
    def in_time(self) -> InTime:
        """Whether the node was drained in time: before the date of its event, and before the platform struck.

        Everything that says so asks here. It is unknown for a case that goes on, and for an event that did
        not start.
        """
        match self:
            case CaseResult.DRAINED:
                return InTime.YES
            case CaseResult.LATE | CaseResult.MISSED:
                return InTime.NO
            case _:
                return InTime.UNKNOWN

    @property
    def good(self) -> bool:
        """Whether it is not known that the node was not drained in time."""
        return self.in_time is not InTime.NO


ENDS = tuple(result for result in CaseResult if result is not CaseResult.RUNNING)
"""The outcomes of cases that have ended."""


class CaseOutcome(Struct, frozen=True):
    """The outcome of a case, and the facts that it follows from; moments are UTC.

    `drained` is when the drain ended, `started` when the platform was first seen to start. `pods` is how many
    pods that the drain had to evict were on the node then, None if they could not be counted or it has not
    started. `deadline_passed` is when a pass saw that the latest start was over and no drain had begun.
    `too_late`: the case was announced after that. `met` names the first of the pods, with their workloads and
    PodDisruptionBudgets. `uncordoned` says who uncordoned the node in the middle of the case, None if nobody
    did.
    """

    result: CaseResult
    drained: datetime | None = None
    started: datetime | None = None
    pods: int | None = None
    deadline_passed: datetime | None = None
    too_late: bool = False
    met: str = ""
    uncordoned: Uncordoned | None = None

    @property
    def words(self) -> str:
        """The outcome as a sentence, with its times."""
        return "; ".join(part for part in self._parts() if part)

    def _parts(self) -> Iterator[str]:
        drained = f"drained at {to_text(self.drained)}" if self.drained else ""
        started = f"the platform started at {to_text(self.started)}" if self.started else ""
        match self.result:
            case CaseResult.MISSED:
                yield f"missed: {started} while {counted(self.pods, self.met)}"
                yield drained or "not drained"
            case CaseResult.LATE:
                yield f"late: {drained}, after the date of its event" if not started else f"late: {drained}"
                yield started
            case CaseResult.DRAINED:
                yield f"in time: {drained or 'no pod had to be evicted'}"
                yield started
            case CaseResult.CANCELLED:
                yield CANCELLED
                yield drained
            case CaseResult.STOPPED:
                if self.uncordoned is None:
                    yield "stopped: the event was still announced when the case ended"
                else:
                    yield "stopped: whether the platform did its maintenance is not known"
                yield drained
            case CaseResult.RUNNING:
                yield "running"
        if self.uncordoned is not None:
            yield self.uncordoned.words
        if self.deadline_passed:
            what = "announced too late" if self.too_late else "no drain had begun at the latest start"
            yield f"{what} (seen at {to_text(self.deadline_passed)})"


def unbegun(case: CaseRecord) -> str:
    """Return in words that the latest start of a case is over and no drain has begun."""
    when = "it was announced too late" if case.facts.announced_too_late else "the latest start has passed"
    return f"{when}, and no drain has begun"


def counted(pods: int | None, met: str = "") -> str:
    """Return how many pods were on a node, in words; `met` names them."""
    if pods is None:
        return "an unknown number of pods was on the node"
    words = "pod that had to be evicted was" if pods == 1 else "pods that had to be evicted were"
    return f"{pods} {words} on the node{f': {met}' if met else ''}"


def outcome_of(case: CaseRecord) -> CaseOutcome | None:
    """Return the outcome of a case, None if the record has no case."""
    facts = case.facts
    if not case.goes_on and not facts.any:
        return None
    done = case.drain.done if case.drain is not None else None
    struck = struck_by(case)
    left = case.uncordoned if case.goes_on else None
    first = struck or min(facts.starts, key=lambda start: start.at, default=None)
    result = CaseResult.MISSED if struck is not None else _result(case, done)
    return CaseOutcome(
        result,
        drained=done or (left.drained if left is not None else None),
        started=first.at if first else None,
        pods=first.pods if first else None,
        deadline_passed=facts.deadline_passed,
        too_late=facts.announced_too_late,
        met=first.met if first else "",
        uncordoned=left,
    )


def outcome_at_end(case: CaseRecord, *, deleted: bool = False) -> CaseOutcome:
    """Return the outcome of a case that has ended; `deleted` says that it ends with its node.

    Nobody knows how an event ends that is still announced and has not started. A node that was drained before
    it was deleted has lost no pod.
    """
    found = outcome_of(case) or CaseOutcome(CaseResult.STOPPED)
    known = case.quiet_since is not None or bool(case.facts.starts) or (deleted and found.drained is not None)
    return found if known else replace(found, result=CaseResult.STOPPED)


def outcome_of_event(case: CaseRecord, event: KnownEvent, *, ended: bool) -> CaseOutcome | None:
    """Return the outcome of one event of a case, None if the case does not know it.

    What happened to the other events does not count. `ended` says that this one is gone.
    """
    starts = tuple(start for start in case.facts.starts if start.event.matches(event))
    known = next((of_case for of_case in case.events if of_case.matches(event)), None)
    if known is None and not starts:
        return None
    quiet = (case.quiet_since or case.since or event.not_before) if ended else None
    facts = replace(case.facts, starts=starts)
    if known is not None:
        # What is shown of an event does not say that, and the record does.
        event = replace(event, reports_start=known.reports_start)
    return outcome_of(replace(case, events=(event,), facts=facts, quiet_since=quiet))


def struck_by(case: CaseRecord) -> PlatformStart | None:
    """Return the start that met pods, None if there is none.

    Unknown is not healthy: once the events are gone and the node was never drained, a start whose pods could
    not be counted met some.
    """
    counted = [start for start in case.facts.starts if start.pods]
    never_drained = case.drain is None or case.drain.done is None
    if not counted and case.quiet_since is not None and never_drained:
        counted = [start for start in case.facts.starts if start.pods is None]
    return min(counted, key=lambda start: start.at, default=None)


def _result(case: CaseRecord, done: datetime | None) -> CaseResult:
    starts, ended = case.facts.starts, case.quiet_since is not None
    uncounted = [start for start in starts if start.pods is None]
    if done is not None:
        due = min((event.not_before for event in case.events if event.not_before), default=None)
        if (due is not None and done > due) or any(done > start.at for start in uncounted):
            return CaseResult.LATE
        return CaseResult.CANCELLED if ended and not _begun(case) else CaseResult.DRAINED
    if starts and not uncounted:
        return CaseResult.DRAINED
    if not ended:
        return CaseResult.RUNNING
    # Without a drain it is no sign of a start that nobody reports one.
    unknown = case.uncordoned is not None and not all(event.reports_start for event in case.events)
    return CaseResult.STOPPED if unknown else CaseResult.CANCELLED


def _begun(case: CaseRecord) -> bool:
    """Whether the maintenance took place, as far as its sources tell."""
    return (
        bool(case.facts.starts) or bool(case.asked) or any(not event.reports_start for event in case.events)
    )
