"""What is known of a node, as far as something is to be decided or reported, and its place in the queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from reconciler.model.event import Answer
from reconciler.model.holds import LOOKED_AFTER, NOT_CLAIMED, RECORD_READABLE
from reconciler.model.instructions import instructions_of
from reconciler.model.machine import CONDITION
from reconciler.model.node import HOSTED_LABEL, Node, upgrade_on
from reconciler.model.plan import Hold
from reconciler.model.problems import internal
from reconciler.model.record import Record, Unreadable
from reconciler.model.schedule import LEAST_URGENT
from reconciler.model.snapshot import NodeAssessment, Resting
from reconciler.model.values import replace
from reconciler.passes.node_facts import DEFAULT, NodeFacts, PassContext
from reconciler.passes.parts import Parts
from reconciler.profiles import case as cases
from reconciler.profiles.checks.people import is_adoptable
from reconciler.profiles.endings import Means
from reconciler.profiles.instructed import Said, beside_others, instructed, others_at_work
from reconciler.profiles.judging import judge, urgency_of
from reconciler.settings.policies import ConditionStatus, is_on_most
from reconciler.settings.schema import Settings

_NOTHING: Mapping[str, str] = {}


def look_safely(
    node: Node, context: PassContext, parts: Parts, in_vain: Mapping[str, str] = _NOTHING
) -> NodeFacts | None:
    """Return what `look` does; where that fails, or something failed before, the node with the problem.

    None also for a node that `nodeSelector` does not select, without our record or hints, and without an
    event of a kind that drains.
    """
    assessment = context.assessment.of(node.name)
    problem = context.snapshot.problems.nodes.get(node.name) or assessment.problem
    try:
        selected = context.settings.in_fleet(node.labels)
        if not selected and not _is_marked(node, assessment, context.settings, parts):
            return None
        if not problem:
            return look(node, context, parts, in_vain)
    except Exception as error:  # noqa: BLE001 - one node's data harms that node only
        problem = problem or internal(f"node {node.name} can't be judged", error)
    return broken(node, context, problem)


def common_conditions(
    seen: Iterable[NodeFacts], selected: Iterable[Node], resting: Iterable[Resting], context: PassContext
) -> Mapping[str, str]:
    """Return in words each condition that is on most of the nodes that it drains, by its type.

    A condition that the settings name, and that is on more than half of the managed nodes, is more likely
    a mistake in the settings than a fault of each node. Nodes on which it means nothing are not counted.
    """
    settings = context.settings

    def drained_by(condition: str, node: Node) -> bool:
        policy = settings.policies(node.labels).of_condition(condition)
        return policy is not None and policy.drain and settings.manages(node.labels)

    on: dict[str, list[NodeFacts]] = {}
    for facts in seen:
        for condition in {judged.event.condition for judged in facts.judged if judged.event.condition}:
            if drained_by(condition, facts.read):
                on.setdefault(condition, []).append(facts)
    common: dict[str, str] = {}
    for condition, nodes in on.items():
        of = sum(drained_by(condition, node) for node in selected)
        of += sum(part.count for part in resting if drained_by(condition, part.node))
        if not is_on_most(len(nodes), of):
            continue
        policy = nodes[0].policies.of_condition(condition)
        status = policy.status if policy is not None else ConditionStatus.TRUE
        common[condition] = (
            f"{condition} is {status} on {len(nodes)} of {of} managed nodes, so it is no sign of a fault, "
            "and no drain starts for it; if another status is the fault, name it in "
            f"conditions.{condition}.status"
        )
    return common


def broken(node: Node, context: PassContext, problem: str) -> NodeFacts:
    """Return a node of which only its record is used, because an error kept it from being judged."""
    record = context.snapshot.records.get(node.name)
    known = record if isinstance(record, Record) else None
    return replace(_facts(node, NodeAssessment(), known, context), problem=problem)


def _facts(node: Node, assessment: NodeAssessment, written: Record | None, context: PassContext) -> NodeFacts:
    policies = context.settings.policies(node.labels)
    if written is None:
        return NodeFacts(node, assessment, policies)
    believed, record = written.believed(DEFAULT, context.times), written.in_force(cordoned=node.unschedulable)
    record = believed if record is written else record.believed(DEFAULT, context.times)
    return NodeFacts(
        node,
        assessment,
        policies,
        record=record,
        written=written,
        case=record.case(DEFAULT),
        of_the_future=believed != written,
    )


def rests(node: Node, assessment: NodeAssessment, settings: Settings, parts: Parts) -> bool:
    """Whether no decision is about the node, so that it only counts: it is in service, without any news.

    It may have events of kinds that drain no node. Features that decide about nodes without news are
    asked besides.
    """
    if node.out_of_service or _has_signs(node, assessment, settings, parts):
        return False
    if not assessment.events:
        return True
    # What a service says of an event may change by time alone.
    here = all(source.startswith(CONDITION) for event in assessment.events for source in event.sources)
    return here and not _may_drain(node, assessment, settings)


def _has_signs(node: Node, assessment: NodeAssessment, settings: Settings, parts: Parts) -> bool:
    """Whether a pass may have to decide on a node for something else than an event."""
    keys = settings.keys.names
    return bool(
        keys.record in node.annotations
        or any(reading.answer is Answer.UNKNOWN and reading.installed for reading in assessment.readings)
        or keys.state in node.labels
        or parts.bears_signs(node, keys.prefix)
        or node.copied
        or node.uid_change(keys.prefix)
        or not node.annotations.keys().isdisjoint(keys.instructions)
        or is_adoptable(node, settings)
    )


def _is_marked(node: Node, assessment: NodeAssessment, settings: Settings, parts: Parts) -> bool:
    """Whether a node that the settings do not select has our record or hints, or an event that drains."""
    keys = settings.keys.names
    if keys.record in node.annotations or parts.outlived(node, keys.prefix).any:
        return True
    return bool(assessment.events) and _may_drain(node, assessment, settings)


def _may_drain(node: Node, assessment: NodeAssessment, settings: Settings) -> bool:
    """Whether an event of the node is of a kind that drains."""
    policies = settings.policies(node.labels)
    meant = (policies[event.kind, event.condition] for event in assessment.events)
    return any(policy is not None and policy.drain for policy in meant)


def look(
    node: Node, context: PassContext, parts: Parts, in_vain: Mapping[str, str] = _NOTHING
) -> NodeFacts | None:
    """Return what is known about a node, None if there is nothing to decide or report.

    `in_vain` says for which shared events its drain would wait in vain for other nodes, as in `Means`.
    """
    snapshot, settings, now = context.snapshot, context.settings, context.now
    assessment = context.assessment.of(node.name)
    runs = bool(settings.profile_names) and settings.manages(node.labels)
    if not (runs or assessment.events or _has_signs(node, assessment, settings, parts)):
        return None
    record = snapshot.records.get(node.name)
    unreadable = record.because if isinstance(record, Unreadable) else ""
    facts = _facts(node, assessment, None if isinstance(record, Unreadable) else record, context)
    facts = replace(facts, untouched=_why_untouched(facts, unreadable, settings))
    notice = any(
        reading.source in context.notice_names and reading.installed and reading.answer is not Answer.UNKNOWN
        for reading in assessment.readings
    )
    means = Means(
        notice,
        snapshot.for_settings.machines.get(node.name),
        context.twins.get(node.name, ""),
        assessment.readings,
        lambda: context.vms,
        facts.case,
        in_vain,
        snapshot.spread,
        parts.ends,
        parts.waives(node, facts.case, settings),
    )
    judged = tuple(
        judge(event, node, settings, snapshot.remediator, now, means) for event in assessment.events
    )
    facts = replace(facts, judged=judged, zone=node.zone)
    if unreadable:
        return facts
    hidden, gone = cases.unreported(facts.case, judged, assessment, context.reading_names.__contains__)
    urgency = urgency_of(facts.current, hidden, facts.policies)

    # What people say. Starts wait for them, and for other tools.
    instructions = instructions_of(node, context.keys.prefix, now, snapshot.ledger.holds)
    said = Said(instructions, facts.case, node, now, context.keys)
    upgrade = upgrade_on(node, context.upgraded)
    judged = tuple(
        instructed(event, facts.policies[event.event.kind, event.event.condition], said) for event in judged
    )
    judged = tuple(
        beside_others(event, others_at_work(event, node, settings, upgrade), now) for event in judged
    )
    return replace(facts, judged=judged, gone=gone, urgency=urgency, instructions=instructions)


def why_out_of_service(record: Record | None, *, stopped: bool = False) -> str:
    """Return why a node with this record is out of service, empty if it is not.

    `stopped` is whether a person has stopped its drain.
    """
    if record is None:
        return ""
    if record.claimed_by:
        return f"drained by hand by {record.claimed_by}"
    if not record.in_maintenance:
        names = sorted({claim.name for claim in record.of_features})
        return f"in maintenance for {', '.join(names)}" if names else ""
    if record.drain and record.drain.drain.done:
        return "ours, drained"
    return "ours, stopped" if stopped else "ours, draining"


QueueKey = tuple[bool, tuple[bool, bool, datetime, int], str, str]


def queue_key(node: NodeFacts, own_node: str | None) -> QueueKey:
    """Return the sort key of a node: our own node goes last, then by urgency, zone and name."""
    return (node.name == own_node, (node.urgency or LEAST_URGENT).key, node.zone, node.name)


def _why_untouched(node: NodeFacts, unreadable: str, settings: Settings) -> Hold | None:
    name, release = node.name, settings.keys.names.release(node.name)
    if unreadable:
        fix = f"{release} --reset removes it"
        return RECORD_READABLE.on(name, f"its record is not changed: {unreadable}; {fix}")
    if not settings.in_fleet(node.read.labels):
        if node.written is None:
            return LOOKED_AFTER.on(name, "nodeSelector does not select it")
        undo = f"{release} removes our cordon, label and record"
        return LOOKED_AFTER.on(name, f"nodeSelector no longer selects it; {undo}")
    if HOSTED_LABEL in node.read.labels:
        return LOOKED_AFTER.on(name, f"AKS manages the node itself (label {HOSTED_LABEL})")
    if not settings.manages(node.read.labels):
        return LOOKED_AFTER.on(name, f"label {settings.keys.names.ignore} excludes it")
    if node.record is not None and node.record.claimed_by:
        words = f"it is drained by hand by {node.record.claimed_by}"
        return NOT_CLAIMED.on(name, f"{words}, and stays out of service until it is released")
    return None
