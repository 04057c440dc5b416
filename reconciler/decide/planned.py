"""The decisions about a node, as its plan and its only patch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.decide.context import PassContext
from reconciler.decide.seen import Seen
from reconciler.engine import case as cases
from reconciler.engine.budget import pool_of
from reconciler.engine.state_machine import Walk
from reconciler.model.event import Answer, Kind
from reconciler.model.holds import HoldCode
from reconciler.model.own import node_write
from reconciler.model.plan import Actions, DrainState, Hold, NodePlan, NodeWrite
from reconciler.model.record import CaseRecord, Record, State
from reconciler.model.record_text import to_annotation
from reconciler.publishing.publisher import NodeSigns


@dataclass(frozen=True, slots=True)
class Decided:
    """A node after the pass: its state, its profile's data, what holds it, and the case that ended."""

    state: State
    record: CaseRecord | None
    holds: tuple[Hold, ...]
    ended: CaseRecord | None = None


def node_plan(
    one: Seen, walked: Walk | None, after: Decided, todo: Actions, draining: DrainState
) -> NodePlan:
    """Return the plan of a node; `walked` is None if the node must not be changed."""
    node = one.node
    readings = one.assessment.readings
    silent = [reading for reading in readings if reading.answer is Answer.UNKNOWN and reading.installed]
    return NodePlan(
        node=node.name,
        zone=node.zone,
        pool=pool_of(node),
        before=one.state,
        after=after.state,
        events=one.judged,
        checks=walked.answers if walked else (),
        transitions=walked.transitions if walked else (),
        holds=_holds(one, walked, after, todo),
        unread=tuple((reading.source, reading.because) for reading in silent),
        unschedulable=node.unschedulable,
        record=after.record,
        todo=todo,
        draining=draining,
        urgency=one.urgency,
        ended=after.ended,
        uid=node.uid,
        instructions=one.instructions,
    )


def _holds(one: Seen, walked: Walk | None, after: Decided, todo: Actions) -> tuple[Hold, ...]:
    """Return what holds the node.

    A patch that only shows something to other tools, or only records a fact, is no action.
    """
    acts = todo.any and not _only_tells(one, walked, after, todo)
    return after.holds if after.holds or acts else _unspoken_holds(one)


def _only_tells(one: Seen, walked: Walk | None, after: Decided, todo: Actions) -> bool:
    """Whether the only action is to record a fact of the case."""
    moved = walked is not None and walked.transitions
    record = after.record
    # The end of a drain also changes what is known of its pods.
    facts = record is not None and record.facts != one.case.facts and record.drain == one.case.drain
    return facts and not moved and todo.drain is None and not todo.stop_drain


def _unspoken_holds(one: Seen) -> tuple[Hold, ...]:
    """Return the holds that do not come from a check:

    law 7 requires one for every event without an action.
    """
    holds = []
    let_be = {event.event for event in one.judged} - {
        event.event for event in cases.not_dismissed(one.case, one.judged)
    }
    for event in one.judged:
        if event.event in let_be and event.asks:
            reason = "someone uncordoned the node, so it is ignored until a new event"
            holds.append(Hold(one.node.name, HoldCode.DISMISSED, reason))
        elif event.asks and not event.starts:
            holds.append(Hold(one.node.name, HoldCode.IN_TIME, event.because))
        elif not event.asks and event.event.kind is Kind.UNKNOWN:
            holds.append(Hold(one.node.name, HoldCode.EVENT_READABLE, event.because, event.until))
    return tuple(dict.fromkeys(holds))


def node_patch(
    one: Seen, walked: Walk, case: CaseRecord, signs: NodeSigns, context: PassContext
) -> NodeWrite | None:
    """Return the node's only patch, None if nothing changes.

    `case` is the profile's data after this pass. The annotations and labels in `signs` are for other tools,
    and part of the same patch.
    """
    node, keys = one.node, context.keys
    record = (one.record or Record(node.uid)).with_case(one.profile, case, context.now)
    labels: dict[str, str | None] = {
        key: value for key, value in walked.effects.labels.items() if node.labels.get(key) != value
    }
    shown = node.labels.get(keys.state)
    shows = context.settings.keys.state_label and record.worst is not State.OPERATIONAL
    wanted = record.worst.value if shows else None
    if shown != wanted:
        labels[keys.state] = wanted
    labels |= signs.labels
    annotations: dict[str, str | None] = dict(signs.annotations)
    recorded = node.annotations.get(keys.record)
    # A record that says the same stays as it is written, in an older version of the format too.
    text = None if record.empty else recorded if record == one.written else to_annotation(record)
    if text != recorded:
        annotations[keys.record] = text
    if keys.approved in node.annotations and one.case.open and not case.open:
        # It was for the case that has ended.
        annotations[keys.approved] = None
    unschedulable = walked.effects.unschedulable
    if unschedulable == node.unschedulable:
        unschedulable = None
    if not labels and not annotations and unschedulable is None:
        return None
    return node_write(
        node,
        keys.prefix,
        unschedulable=unschedulable,
        labels=labels,
        annotations=annotations,
    )


def second_patch(one: Seen, first: NodeWrite | None, case: CaseRecord, context: PassContext) -> NodeWrite:
    """Return the patch that follows `first` in the same pass, and only writes the record.

    It expects the node as `first` leaves it. Its resourceVersion is older than that, so the writer reads the
    node again.
    """
    node, keys = one.node, context.keys
    if first is not None:
        node = replace(
            node,
            labels=_merged(node.labels, first.labels),
            annotations=_merged(node.annotations, first.annotations),
            unschedulable=node.unschedulable if first.unschedulable is None else first.unschedulable,
        )
    record = (one.record or Record(node.uid)).with_case(one.profile, case, context.now)
    return node_write(node, keys.prefix, annotations={keys.record: to_annotation(record)})


def _merged(have: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {key: text for key, text in {**have, **changes}.items() if text is not None}
