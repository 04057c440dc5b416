"""Shared events: a platform starts one early only once all of its nodes are drained.

So a node of such an event begins early only together with the others. Where one of them begins much later, or
not all of them fit the budget at a time, the others would stand empty until its date, and hold their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from reconciler.calendar.occurrences import FOREVER
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import Ending, JudgedEvent
from reconciler.model.snapshot import Resting
from reconciler.model.values import replace
from reconciler.passes.decide.known import look_safely
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.passes.parts import Parts
from reconciler.profiles import case as cases
from reconciler.profiles.instructed import beside_other_vms
from reconciler.starts.budget import OurPlace, count_places
from reconciler.starts.times import NEAR, exempt_beside, first_allowed, start_times


class _Begin(Struct, frozen=True):
    """When the drain of one node for an event may begin (UTC), and what it waits for, in words."""

    at: datetime
    because: str = ""


def together(
    seen: tuple[NodeFacts, ...],
    selected: Sequence[Node],
    resting: Iterable[Resting],
    ours: Mapping[str, OurPlace],
    context: PassContext,
    parts: Parts,
) -> tuple[NodeFacts, ...]:
    """Return the nodes, of which those of an event of several begin early only together with the others.

    `selected` and `resting` are all that the budget counts, and `ours` hold a place because of us.
    """
    # The nodes of each shared event, by its ID, and how it ends.
    events: dict[str, set[str]] = {}
    endings: dict[str, Ending] = {}
    for facts in seen:
        for coming in _coming(facts):
            for ending in coming.after_drain.endings:
                for shared in ending.shared:
                    events.setdefault(shared.id, {facts.name}).update(shared.nodes)
                    endings[shared.id] = ending
    events = {id_: names for id_, names in events.items() if len(names) > 1}
    if not events:
        return seen
    budget = context.settings.budget
    places = count_places(selected, ours, budget, context.now, (), context.faults).beside(resting)
    by_name = {facts.name: facts for facts in seen}
    in_vain: dict[str, dict[str, str]] = {}
    waits: dict[tuple[str, str], _Begin] = {}
    for id_, names in events.items():
        ending = endings[id_]
        begins = {name: _begin(by_name.get(name), name, id_, ending, context) for name in names}
        in_order = sorted(names, key=lambda name: (begins[name].at, name))
        full = places.why_not_together([by_name[name].read for name in in_order if name in by_name], ours)
        for name in names & by_name.keys():
            last = begins[in_order[-1] if in_order[-1] != name else in_order[-2]]
            facts = by_name[name]
            wanted = (event for event in _coming(facts) if event.after_drain.by(ending.offer))
            judged = next((event for event in wanted if _has(event, id_)), None)
            if judged is None or (not full and last.at - NEAR <= begins[name].at):
                continue
            covered = cases.covers(facts.case, judged.event)
            if full or covered or last.at >= _late_start(judged, facts, context):
                in_vain.setdefault(name, {})[id_] = full or last.because
            elif judged.after_drain.by_us:
                waits[name, id_] = last
    again = {name: look_safely(by_name[name].read, context, parts, why) for name, why in in_vain.items()}
    return tuple(_waiting(again.get(facts.name) or facts, waits, context) for facts in seen)


def _coming(facts: NodeFacts) -> list[JudgedEvent]:
    """Return the events of a node that have not started; none of a node that must not be changed."""
    if facts.untouched is not None:
        return []
    return [judged for judged in facts.current if not judged.event.started]


def _has(judged: JudgedEvent, id_: str) -> bool:
    return id_ in map(str.casefold, judged.event.ids)


def _begin(facts: NodeFacts | None, name: str, id_: str, ending: Ending, context: PassContext) -> _Begin:
    """Return when the drain of a node may begin for an event: FOREVER if nobody knows a moment."""
    if facts is None:
        return _Begin(FOREVER, f"node {name} does not report it")
    if facts.untouched is not None:
        return _Begin(FOREVER, f"node {name} must not be changed: {facts.untouched.reason}")
    judged = next((one for one in facts.judged if _has(one, id_)), None)
    if judged is None:
        known = any(id_ in map(str.casefold, old.ids) for old in cases.allowed(facts.case))
        drained = known and facts.case.drain is not None
        return _Begin(context.now if drained else FOREVER, f"node {name} does not report it")
    if not judged.after_drain.by(ending.offer):
        return _Begin(FOREVER, f"the settings of node {name} do not {ending.want} it")
    if judged not in facts.current:
        return _Begin(FOREVER, f"node {name} is left alone: {cases.dismissed_words(facts.case, context.now)}")
    if cases.covers(facts.case, judged.event):
        return _Begin(context.now)
    if judged.times is None:
        return _Begin(FOREVER, f"node {name} is not drained: {judged.because}")
    outlook = context.settings.calendar.outlook(context.now, facts.read.labels)
    exempt = exempt_beside([(judged, judged.times)])
    allowed = first_allowed(outlook, exempt, max(judged.times.earliest, context.now))
    why = f": {judged.times.kept}" if judged.times.kept else ""
    if allowed is None:
        return _Begin(FOREVER, f"node {name} has no planned start{why}")
    return _Begin(allowed[0], f"node {name} does not start before {to_text(allowed[0])}{why}")


def _late_start(judged: JudgedEvent, facts: NodeFacts, context: PassContext) -> datetime:
    """Return when the drain may begin if only the platform ends the event."""
    policy = facts.policies[judged.event.kind, judged.event.condition]
    if policy is None:
        return FOREVER
    outlook = context.settings.calendar.outlook(context.now, facts.read.labels)
    return start_times(judged.event, policy, outlook).earliest


def _waiting(facts: NodeFacts, waits: Mapping[tuple[str, str], _Begin], context: PassContext) -> NodeFacts:
    def waiting(judged: JudgedEvent) -> JudgedEvent:
        for id_ in judged.event.ids if judged.after_drain.by_us else ():
            if begin := waits.get((facts.name, id_.casefold())):
                judged = beside_other_vms(judged, begin.at, begin.because, context.now)
        return judged

    return replace(facts, judged=tuple(map(waiting, facts.judged))) if waits else facts
