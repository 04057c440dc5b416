"""The workflows of a node: they run before the profile of platform events, and both end in one patch."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial

from reconciler.calendar.values import format_duration
from reconciler.features.workflows.configured import Workflows, workflows_of
from reconciler.features.workflows.data import WorkflowData, to_annotation
from reconciler.features.workflows.holds import (
    WORKFLOW_DATA_READABLE,
    WORKFLOW_GONE,
    WORKFLOW_UNCORDONED,
    WORKFLOW_UNKNOWN,
)
from reconciler.features.workflows.notifying import notified
from reconciler.features.workflows.reports import WorkflowReports
from reconciler.features.workflows.run import Ran, maintained, run, waiting_drain
from reconciler.features.workflows.services import CLAIM, NAME, TakeLease
from reconciler.features.workflows.settings import PROFILES
from reconciler.features.workflows.situation import (
    Members,
    Worked,
    WorkflowSituation,
    claim_of,
    claimed_in,
    members_of,
)
from reconciler.features.workflows.trigger_types import Draining
from reconciler.model import limits
from reconciler.model.drains import DrainOrder, DrainProgress
from reconciler.model.event import Answer
from reconciler.model.holds import PODS_READABLE
from reconciler.model.moments import shifted, to_text
from reconciler.model.node import upgrade_on
from reconciler.model.plan import Hold, Notice, NoticeType, Transition
from reconciler.model.record import (
    CaseRecord,
    Claim,
    ClaimedDrain,
    ClaimKind,
    Cordon,
    DrainRecord,
    Record,
    State,
)
from reconciler.model.values import replace
from reconciler.model.writes import used_keys
from reconciler.passes.decide.draining import followed, recorded_order
from reconciler.passes.decide.facts import pods_left
from reconciler.passes.decision import CaseDecision
from reconciler.passes.node_facts import DEFAULT, Decider, NodeFacts, PassContext, Progress
from reconciler.profiles.checks.people import not_held
from reconciler.profiles.checks.platform import left_to_us
from reconciler.profiles.checks.starts import only_reconciler
from reconciler.profiles.instructed import older_acts
from reconciler.profiles.situation import Situation, Work
from reconciler.settings.profiles import DEFAULT_PROFILE, SEPARATOR
from reconciler.settings.schema import Mode

PLATFORM = "the maintenance of the platform"
"""What the profile of platform events is called where a workflow waits for it."""

_COUNTED_ATTEMPTS = 1000
"""Attempts of a drain that are counted: nothing waits for so long."""

FIRST_PAUSE = timedelta(minutes=1)
"""How long a node stays uncordoned that somebody has uncordoned during its drain, the first time."""

_DOUBLED = 10
"""How often that time is doubled at most."""

FAILED = "ChangeMaintenanceStateFailed"
"""The reason of maintenance-controller's Event about a step that does not succeed."""


class NodeWorkflows(Decider):
    """The workflows of all nodes in one pass."""

    def __init__(self, nodes: Sequence[NodeFacts], context: PassContext) -> None:
        """Read the data of all nodes; one that can't be read has a problem."""
        del nodes
        snapshot, settings = context.snapshot, context.settings
        self._workflows = workflows_of(PROFILES.of(settings))
        keys, read = settings.keys.names, snapshot.every_node() if self._workflows.on else ()
        members = members_of(read, snapshot.records, self._workflows.selected, keys)
        self._members = Members(members, snapshot.for_settings.of_features.get(NAME))
        self._data: dict[str, WorkflowData] = {}
        """The data after this pass of each node whose workflows have taken their step."""
        unread = sorted(self._members.read.unread_leases.items())
        if unread:
            ref, why = unread[0]
            turn = f"no workflow takes the turn of the Lease {ref}, because it can't be read: {why}"
            self.notes = (turn,)

    def decide(
        self, decision: CaseDecision, node: NodeFacts, situation: Situation, context: PassContext
    ) -> tuple[NodeFacts, Situation]:
        """Return both after one step of each workflow of the node; nothing is changed that can't be read."""
        read, keys, workflows = node.read, context.keys, self._workflows
        if not workflows.on:
            decision.holds_of_features = tuple(_gone(node, node.record, workflows, context))
            return node, situation
        member = self._members.of(node.name)
        if member.problem:
            key, again = keys.maintenance_data, _begin_again(node, context)
            reason = f"the annotation {key} is not changed: {member.problem}; {again}"
            decision.holds_of_features = (WORKFLOW_DATA_READABLE.on(node.name, reason),)
            # It may be in maintenance for one of its workflows.
            return _joined(node, situation, node.record, "a workflow that can't be read")
        names = member.profiles

        # What their checks and triggers read. A message does not wait for the drain that an `enter` chain
        # waits for, nor for a person's hold.
        silent = tuple(
            f"{reading.source}: {reading.because}"
            for reading in node.assessment.readings
            if reading.answer is Answer.UNKNOWN and reading.installed
        )
        given = WorkflowSituation(
            node=read,
            data=WorkflowData(),
            profile="",
            state=State.OPERATIONAL,
            since=context.now,
            now=context.now,
            members=self._members.all,
            read=self._members.read,
            in_maintenance_here=(PLATFORM,) if node.case.state is State.IN_MAINTENANCE else (),
            platform=None if context.settings.origin.foreign else situation,
            silent=silent,
            keys=keys,
        )
        label = read.labels.get(keys.maintenance_profile, "")
        given = replace(given, data=maintained(member.data, label, workflows, given))
        rules = [(name, workflows.by_name[name].rules(given.data.profiles[name].current)) for name in names]
        instances = workflows.notifications
        told = notified(
            [(name, tuple(instances[notify] for notify in each.notify)) for name, each in rules], given
        )
        given = replace(given, data=told.data)

        # The drain that a chain waits for, then one step of each.
        record = _in_force(node, node.record or context.new_record(read), given.data)
        waiting = _waiting(record, names)
        kept = _kept_from_starts(node, context)
        record, notices = _followed(node, given, record, waiting, workflows, context)
        ran_from = partial(
            run,
            workflows,
            names,
            situation=given,
            resumed=tuple(claim.name for claim in waiting),
            starts=context.settings.mode is not Mode.FINISH and not kept,
        )
        ran = ran_from(Work(read, record))
        held = _uncordoned(node, ran.work, names, context)
        if held and not kept and held[0].until is not None and held[0].until <= context.now:
            ran, held = ran_from(_cordoned_again(ran.work, context)), ()
        work = ran.work

        # What follows, and what holds them.
        needs, data = workflows.needs, read.annotations.get(keys.maintenance_data)
        if ran.data != member.data or data is None:
            text = to_annotation(ran.data)
            decision.annotations = {keys.maintenance_data: text} if text != data else {}
        decision.left, decision.used = work.node, used_keys(read, needs.labels, needs.annotations)
        decision.shown_by = keys.maintenance_state if context.settings.keys.state_label else ""
        claimed = _drain_of_workflows(work.record)
        if ran.draining is not None and claimed is not None:
            by = ", ".join(claim.name for claim in claimed.claims if claim.kind == CLAIM)
            order = _order(node, ran.draining, claimed.drain, context)
            decision.drain = replace(order, why=f"workflow {by}")
        decision.transitions_of_features = tuple(_transitions(ran, record, work.record))
        gone = (
            *_gone(node, work.record, workflows, context),
            *_left_over(node, work.record, ran.data, workflows, context),
            *_unknown_states(node, names, ran.data, workflows, context),
            *_unknown_names(node, workflows, context),
        )
        unread = _unread(node, waiting, context)
        decision.holds_of_features = (*held, *kept, *gone, *unread, *ran.holds)
        decision.notices = (*notices, *work.notices)
        decision.tasks = (*map(TakeLease, ran.takes), *work.tasks)
        decision.messages = told.messages
        decision.of_features = {NAME: WorkflowReports(ran.reports, told.next)}
        self._data[node.name] = ran.data
        inside = [report.profile for report in ran.reports if report.after is State.IN_MAINTENANCE]
        inside += [claim.name for claim in _waiting(work.record, tuple(given.data.profiles))]
        after = None if work.record.empty else work.record
        node, situation = _joined(node, situation, after, ", ".join(dict.fromkeys(inside)))
        closed = replace(situation.node, unschedulable=work.node.unschedulable)
        return node, replace(situation, node=closed)

    def note(self, decision: CaseDecision, node: NodeFacts, progress: Progress) -> None:
        """Show the nodes that come later in the pass what the workflows of this one do."""
        data, left = self._data.get(node.name), decision.left
        if data is None or left is None:
            return
        self._members.moved(left, data)
        for task in decision.tasks:
            if isinstance(task, TakeLease):
                self._members.read = self._members.read.taken(task.take)
        if left.unschedulable and not node.read.unschedulable:
            progress.places = progress.places.take(node.read, "cordoned for a workflow")


def _joined(
    node: NodeFacts, situation: Situation, record: Record | None, elsewhere: str
) -> tuple[NodeFacts, Situation]:
    """Return both with the record as workflows leave it, and with what the platform's profile waits for.

    `elsewhere` names the workflows for which the node is in maintenance, or may be.
    """
    case = record.case(DEFAULT) if record is not None else CaseRecord()
    case = replace(case, elsewhere=elsewhere) if elsewhere else case
    shared = replace(
        situation.record,
        node_cordon=case.node_cordon,
        also_claimed_by=case.also_claimed_by,
        elsewhere=case.elsewhere,
    )
    return replace(node, record=record, case=case), replace(situation, record=shared)


def _in_force(node: NodeFacts, record: Record, data: WorkflowData) -> Record:
    """Return the record without the claims of profiles that maintenance-controller has moved on since.

    It has ended their drains. If it has uncordoned the node, too, they claim nothing any more.
    """
    for name in claimed_in(record):
        began = [held.since for held in (record.cordon, record.drain and record.drain.drain) if held]
        kept = data.profiles.get(name)
        if kept is None or not kept.is_theirs or kept.transition < max(began):
            continue
        record = record.undrained(claim_of(name))
        if not node.read.unschedulable:
            record = record.uncordoned(claim_of(name))
    return record


def _waiting(record: Record, names: tuple[str, ...]) -> tuple[Claim, ...]:
    drain = record.drain_under_way
    if drain is None:
        return ()
    return tuple(one for one in drain.claims if one.kind == CLAIM and one.name in names)


def _unread(node: NodeFacts, waiting: tuple[Claim, ...], context: PassContext) -> tuple[Hold, ...]:
    problem = context.snapshot.problems.pods.get(node.name)
    if not waiting or not problem:
        return ()
    return (PODS_READABLE.on(node.name, f"its pods can't be read: {problem}"),)


def _kept_from_starts(node: NodeFacts, context: PassContext) -> tuple[Hold, ...]:
    """Return what keeps every workflow from a start: a person, an upgrade by AKS, an older reconciler."""
    name, word = node.name, node.instructions.hold
    upgrade = upgrade_on(node.read, context.upgraded)
    others = [left_to_us.hold(name, upgrade)] if upgrade else []
    if older := context.snapshot.reconciler.yields_to:
        others.append(only_reconciler.hold(name, older_acts(older)))
    if word is None:
        return tuple(others)
    return (replace(not_held.hold(name, word.words(name)), until=word.word.until), *others)


def _uncordoned(
    node: NodeFacts, work: Worked, names: tuple[str, ...], context: PassContext
) -> tuple[Hold, ...]:
    """Return the hold of a node that somebody has uncordoned during the drain of a workflow (law 1).

    A file of maintenance-controller cordons it again, as that does, when the hold ends. Each time the hold is
    twice as long, so that two programs that disagree write less and less.
    """
    waiting, drain, cordon = _waiting(work.record, names), work.record.drain, work.record.cordon
    if node.read.unschedulable or work.node.unschedulable or not waiting or drain is None or cordon is None:
        return ()
    profiles, until = ", ".join(claim.name for claim in waiting), None
    if context.settings.origin.foreign:
        pause = FIRST_PAUSE * 2 ** min(max(drain.drain.attempt - 1, 0), _DOUBLED)
        until = shifted(max(cordon.since, drain.drain.since), pause)
    again = f"; it is cordoned again at {to_text(until)}" if until is not None else ""
    reason = (
        f"somebody uncordoned the node while it was drained for {profiles}: kubectl cordon {node.name} "
        f"goes on with the drain; the profile goes on without it when its checks lead out of its state{again}"
    )
    return (WORKFLOW_UNCORDONED.on(node.name, reason, until),)


def _cordoned_again(work: Worked, context: PassContext) -> Worked:
    record = work.record
    if record.cordon is not None and record.drain is not None:
        again = DrainRecord(context.second, record.drain.drain.attempt + 1)
        ours = replace(record.cordon, whose=Cordon.OURS, since=context.second)
        record = _with_drain(replace(record, cordon=ours), again)
    return replace(work, node=replace(work.node, unschedulable=True), record=record, notices=())


def _gone(
    node: NodeFacts, record: Record | None, workflows: Workflows, context: PassContext
) -> Iterator[Hold]:
    selected = set(workflows.selected(node.read.labels.get(context.keys.maintenance_profile, "")))
    for name in claimed_in(record) if record is not None else ():
        if name not in selected:
            reason = (
                f"the node was cordoned for profile {name}, which it does not have any more: add it to the "
                f"label {context.keys.maintenance_profile} again; or {_undo(node, context)}"
            )
            yield WORKFLOW_GONE.on(node.name, reason)


def _left_over(
    node: NodeFacts, record: Record, data: WorkflowData, workflows: Workflows, context: PassContext
) -> Iterator[Hold]:
    """Yield a hold for each profile that claims the node and is operational, so that it ends no claim.

    Its data was removed, it was not a profile of the node for some time, or its settings have changed.
    """
    for name in claimed_in(record):
        kept = data.profiles.get(name)
        workflow = workflows.by_name.get(name)
        if workflow is None or kept is None or kept.is_entering or kept.current is not State.OPERATIONAL:
            continue
        # The settings may have lost the chain that waited for the drain.
        if not _waiting(record, (name,)) or waiting_drain(workflow, kept) is None:
            reason = f"the node is cordoned for profile {name}, which is operational: {_undo(node, context)}"
            yield WORKFLOW_GONE.on(node.name, reason)


def _unknown_states(
    node: NodeFacts, names: tuple[str, ...], data: WorkflowData, workflows: Workflows, context: PassContext
) -> Iterator[Hold]:
    """Yield a hold for each profile that is in a state which the settings do not have any more."""
    for name in names:
        state = data.profiles[name].current
        if not workflows.by_name[name].has(state):
            reason = (
                f"the settings of profile {name} have no {state} any more: add transitions from it; or "
                f"{_begin_again(node, context)}"
            )
            yield WORKFLOW_GONE.on(node.name, reason)


def _unknown_names(node: NodeFacts, workflows: Workflows, context: PassContext) -> Iterator[Hold]:
    """Yield a hold for each name in the node's label that is no profile: such a node only looks healthy."""
    key = context.keys.maintenance_profile
    label = node.read.labels.get(key, "")
    for name in workflows.unknown(label):
        close = difflib.get_close_matches(name, set(workflows.by_name) - {DEFAULT_PROFILE}, n=1)
        meant = f" ({close[0]} is similar)" if close else ""
        wanted = (
            SEPARATOR.join(close[0] if one == name else one for one in label.split(SEPARATOR))
            if close
            else ""
        )
        fix = f"kubectl label node {node.name} {key}={wanted or 'PROFILE'} --overwrite"
        reason = f"label {key} names {name}, and the settings have no such profile{meant}: {fix} corrects it"
        yield WORKFLOW_UNKNOWN.on(node.name, limits.text(reason))


def _begin_again(node: NodeFacts, context: PassContext) -> str:
    remove = f"kubectl annotate node {node.name} {context.keys.maintenance_data}-"
    return f"{remove} removes the states of its profiles, which begin as operational"


def _undo(node: NodeFacts, context: PassContext) -> str:
    return f"{context.keys.release(node.name)} removes our cordon, label and record"


def _transitions(ran: Ran, before: Record, after: Record) -> Iterator[Transition]:
    fresh = after.drain is not None and (before.drain is None or after.drain.drain != before.drain.drain)
    for report in ran.reports:
        for step in report.steps:
            if step.taken:
                because = f"profile {report.profile}: {step.check or 'nothing is required'}"
                yield Transition(report.profile, report.before, report.after, because, fresh)


# The drain that a chain waits for.


def _followed(
    node: NodeFacts,
    given: WorkflowSituation,
    record: Record,
    waiting: tuple[Claim, ...],
    workflows: Workflows,
    context: PassContext,
) -> tuple[Record, tuple[Notice, ...]]:
    claimed = _drain_of_workflows(record)
    if not waiting or claimed is None or not node.read.unschedulable:
        return record, ()
    name = waiting[0].name
    config = waiting_drain(workflows.by_name[name], given.data.profiles[name]) or Draining()
    drain, limit = claimed.drain, config.eviction_timeout
    found = pods_left(node.read, _order(node, config, drain, context).options, context)
    after, notices = followed(node.read, drain, found, _progress(node, context), limit, context)
    if after.done is not None or after.attempt == drain.attempt:
        return _with_drain(record, after), notices
    state = given.data.profiles[name].current
    within = format_duration(limit)
    message = f"Failed to drain the node within {within} for profile {name}: Will stay in {state} state"
    notice = Notice(FAILED, message, NoticeType.WARNING, named_as_node=True)
    return _with_drain(record, after), (*notices, notice)


def _drain_of_workflows(record: Record) -> ClaimedDrain | None:
    """Return the drain that goes on for workflows and not for events of the platform, None without one.

    The profile of platform events joins one only after the node has lost its workflow. If the workflow comes
    back, it waits until that profile needs the drain no more.
    """
    drain = record.drain_under_way
    if drain is None or any(claim.kind == ClaimKind.PROFILE for claim in drain.claims):
        return None
    return drain


def _with_drain(record: Record, drain: DrainRecord) -> Record:
    return record if record.drain is None else replace(record, drain=replace(record.drain, drain=drain))


def _progress(node: NodeFacts, context: PassContext) -> DrainProgress | None:
    found = context.snapshot.drains.get(node.name)
    return found if found is not None and found.uid == node.read.uid else None


def _order(node: NodeFacts, config: Draining, drain: DrainRecord, context: PassContext) -> DrainOrder:
    """Return the order, which treats pods as maintenance-controller does: mirrors and DaemonSets' stay."""
    settings = context.settings
    # What pods ask for is limited over all attempts together. The record has only the start of this one, and
    # each earlier one lasted for its whole time.
    earlier = max(0, min(drain.attempt - 1, _COUNTED_ATTEMPTS))
    begun = shifted(drain.since, -earlier * config.eviction_timeout)
    order = recorded_order(node.read, (), drain, begun, _progress(node, context), context)
    return replace(
        order,
        timeout=config.eviction_timeout,
        options=replace(order.options, ignore_daemonsets=True, evict_empty_dir=True, evict_unmanaged=True),
        escalation=replace(order.escalation, force_late=config.force_eviction),
        slots=None if settings.origin.foreign else settings.drain.max_concurrent_nodes,
    )
