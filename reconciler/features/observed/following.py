"""Follows the cases of passes in mode Observe: what each plan says, and what the platform does then.

Each such pass begins all drains again. A drain takes its place in the budget until the platform ends the
event, so the next node gets a place when it would have got one. `_has_turn` knows the two exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial

from reconciler.features.observed.cases import MOST_STAYING, ObservedCase
from reconciler.model import limits
from reconciler.model.ended_case import leading_kind
from reconciler.model.moments import to_text
from reconciler.model.node import POOL_LABELS
from reconciler.model.outcome import WaitsFor
from reconciler.model.plan import JudgedEvent, NodePlan, Plan
from reconciler.model.problems import guarded
from reconciler.model.record import State
from reconciler.model.schedule import HELD_BY, CaseSchedule, ObstacleCode
from reconciler.model.values import replace
from reconciler.settings.schema import Settings

TOO_LATE = "announced too late"
NO_WINDOW = "no window before the deadline"

_LATE = "late"

_WORDS: Mapping[str, str] = {
    "": TOO_LATE,
    _LATE: TOO_LATE,
    "calendar": NO_WINDOW,
    "person": "kept by a person",
}
"""What people read for the causes of the schedule. Any other one is a limit of the budget."""

_DEADLINE = re.compile(r" \d{4}-\d\d-\d\dT\S+$")
"""What the schedule adds to a cause."""

_REASON = 400
"""Characters of a reason."""


class Following:
    """The open cases, by node. For one thread."""

    def __init__(self, known: Iterable[ObservedCase] = ()) -> None:
        """Go on with the cases that an earlier process has left open."""
        self.open = {case.node: case for case in known if case.over is None}

    def see(self, plan: Plan, settings: Settings) -> tuple[ObservedCase, ...]:
        """Return the cases of which a pass says something new. Its plan is of a rehearsal."""
        now, before = plan.now.replace(microsecond=0), self.open
        plans = {node.node: node for node in plan.nodes}
        begun = [plans[name] for name, case in before.items() if case.begun and name in plans]
        # Their drains would be over, and the pass has them in the way of others all the same.
        passing = settings.budget.spacing > timedelta() or any(
            event.after_drain.by_us for node in begun for event in node.events
        )
        self.open, changed = {}, []
        for name in dict.fromkeys((*before, *plans)):
            case, node = before.get(name), plans.get(name)
            if case is not None and node is not None and node.uid != case.uid:
                changed.append(_over(case, now))
                case = None
            if case is None and node is not None:
                case = _new(node, plan.labels.get(name, {}), now)
            if case is None:
                continue
            others = any(other.node != name for other in begun)
            work = partial(_followed, case, node, plan, others=others, passing=passing)
            after, _ = guarded(f"node {name}: what would be done is not known", work, case)
            if name not in before or _said(after) != _said(before[name]):
                changed.append(after)
            if after.over is None:
                self.open[name] = after
        return tuple(changed)


def _said(case: ObservedCase) -> object:
    """Return what is news of a case: a start that moves with the clock is none."""
    begins = case.begins if case.begun else case.begins is not None
    return replace(case, because="", begins=None, pods=None), begins


def _new(node: NodePlan, labels: Mapping[str, str], now: datetime) -> ObservedCase | None:
    """Return the case of a node that a pass sees first, None if nothing would be done for it.

    A node that is in maintenance is a case of the time before.
    """
    asking = _asking(node)
    if not asking or node.schedule is None or node.before is State.IN_MAINTENANCE:
        return None
    # A plan that names days requires nothing yet.
    if node.schedule.plan_from is not None:
        return None
    first = asking[0].event
    moment = first.since or first.not_before
    event = next(iter(first.ids), to_text(moment) if moment is not None else "")
    kind = leading_kind(judged.event for judged in asking)
    label = next((label for label in POOL_LABELS if labels.get(label) == node.pool), "")
    key = limits.text(event, limits.NAME)
    return ObservedCase(now, node.node, node.uid, kind, node.pool, label if node.pool else "", key)


def _asking(node: NodePlan) -> list[JudgedEvent]:
    return [judged for judged in node.events if judged.asks]


def _over(case: ObservedCase, now: datetime) -> ObservedCase:
    """Return a case whose event is gone: after its date it has started, as far as anyone can know."""
    struck = case.struck or (case.date if case.date is not None and case.date <= now else None)
    late, because = case.late, case.because
    if struck is not None and case.struck is None and not case.begun and not late:
        late = because = TOO_LATE
    return replace(case, over=now, struck=struck, late=late, because=because)


def _followed(
    case: ObservedCase, node: NodePlan | None, plan: Plan, *, others: bool, passing: bool
) -> ObservedCase:
    now = plan.now.replace(microsecond=0)
    asking = _asking(node) if node is not None else []
    if node is None or not asking:
        # A source that can't be read does not say that its event is gone.
        silent = node is not None and not set(case.sources).isdisjoint(node.silent)
        return case if silent else _over(case, now)
    case = replace(
        case,
        kind=leading_kind(judged.event for judged in asking) or case.kind,
        sources=tuple(sorted({source for judged in asking for source in judged.event.sources})),
        date=node.platform_time or case.date,
    )
    if case.struck is None and any(judged.event.started for judged in asking):
        case = replace(case, struck=now)
        if not case.begun and not case.late:
            held = "; ".join(dict.fromkeys(hold.reason for hold in node.holds))
            seen = "the platform had started it when it was first seen" if case.announced == now else ""
            cause = f"{HELD_BY}{node.holds[0].code}" if held and not seen else _LATE
            case = _too_late(case, cause, seen or held or "the platform started it first")
    schedule = node.schedule
    if case.struck is not None or schedule is None:
        return case
    case = replace(case, pods=schedule.prospect.pods if schedule.prospect.pods is not None else case.pods)
    if not case.begun:
        case = _until_begun(case, node, schedule, now, others=others, passing=passing)
    return _with_pods(case, schedule) if case.begun and not case.cleared else case


def _until_begun(
    case: ObservedCase, node: NodePlan, schedule: CaseSchedule, now: datetime, *, others: bool, passing: bool
) -> ObservedCase:
    late = schedule.missed and not schedule.by_pods
    if node.drain_begins:
        begun = replace(case, begun=True, begins=now, late="", because="")
        return _too_late(begun, schedule.cause, schedule.because) if late else begun
    if others and case.begins is not None and not case.late and _has_turn(node, passing=passing):
        return replace(case, begun=True) if case.begins <= now else case
    if late and case.late and _DEADLINE.sub("", schedule.cause) == _LATE:
        # After the deadline, the reason is what it was before.
        return replace(case, begins=schedule.planned_start)
    waits = replace(case, begins=schedule.planned_start, late="", because="")
    return _too_late(waits, schedule.cause, schedule.because) if late else waits


def _has_turn(node: NodePlan, *, passing: bool) -> bool:
    """Whether a node waits for nothing but drains that would be over at its planned start.

    `passing`: drains that have begun end by us, or starts keep a distance. Each pass begins these drains
    again, so their plans move with the clock. Our own node waits for all others in any case.
    """
    return bool(node.holds) and all(
        (passing or hold.code == "othersFirst")
        and (hold.waits_for is WaitsFor.TURN or hold.code == "startPlanned")
        for hold in node.holds
    )


def _too_late(case: ObservedCase, cause: str, because: str) -> ObservedCase:
    """Return a case that is missed. `cause` is what the schedule says it comes from, `because` a sentence."""
    what = _DEADLINE.sub("", cause)
    late = _WORDS.get(what, what if what.startswith(HELD_BY) else f"no place of {what}")
    return replace(case, late=limits.text(late, limits.NAME), because=limits.text(because, _REASON))


def _with_pods(case: ObservedCase, schedule: CaseSchedule) -> ObservedCase:
    """Return a case whose drain has begun, with what keeps its pods. What is gone once stays gone."""
    prospect = schedule.prospect
    if prospect.unknown:
        return case
    # A pod that fits nowhere is evicted all the same.
    keeps = [obstacle for obstacle in prospect.obstacles if obstacle.code is not ObstacleCode.NO_ROOM]
    if not keeps:
        return replace(case, cleared=True, stays=(), because=case.because if case.late else "")
    names = dict.fromkeys(
        name
        for obstacle in keeps
        for name in ([f"PDB {budget}" for budget in obstacle.budgets] or [f"pod {obstacle.pod}"])
    )
    stays = tuple(limits.text(name, limits.NAME) for name in names)[:MOST_STAYING]
    because = case.because if case.late else limits.text(str(keeps[0]), _REASON)
    return replace(case, stays=stays, because=because)
