"""Act: carry out a plan, first the nodes, then the drains. A failure affects only its own node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial

from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.ended_case import ended_cases
from reconciler.model.errors import (
    CloudError,
    ClusterError,
    Conflict,
    Forbidden,
    Late,
    LockLost,
    NotFound,
    NoThread,
    NotKept,
    Rejected,
)
from reconciler.model.instructions import PersonHold
from reconciler.model.limits import count_of
from reconciler.model.outcome import DRAIN, STOP_DRAIN, WRITE_LEDGER, ActionKind, Outcome, Place, Result
from reconciler.model.plan import NodePlan, Notice, NoticeType, Plan, outcome_name
from reconciler.model.ports import Drains, EndedCases, Notification, Notifier, Outbox, WritableOutside
from reconciler.model.problems import guarded, internal
from reconciler.model.snapshot import NOT_WRITTEN, Undone
from reconciler.model.tasks import NotHere
from reconciler.model.values import replace
from reconciler.model.writes import ClusterWriter, NodeWrite

_MOST_FAILED = 3
"""After so many notices that can't be sent, or tasks of a kind that fail, a pass tries no more of them: each
one may take seconds.
"""


_HOLDS = ("the holds in the ledger",)


def act(plan: Plan, outside: WritableOutside) -> tuple[Outcome, ...]:
    """Return the result of every action; raises LockLost as soon as the lock is lost.

    A record is written before the action that it describes. All nodes are cordoned before the first is
    drained, so that pods don't move twice. Nodes that need nothing else to be written first come first.
    """
    refused: set[str] = set()  # Nodes for which this pass does nothing more.
    sender = _Sender(outside.notifier)
    # Their record forgets facts that nobody was told, so it is written after the notices.
    closing = [node for node in plan.nodes if node.todo.pending and node.todo.noted is None]
    late = {node.node for node in closing}
    others = [node for node in plan.nodes if node.node not in late]
    first = [node for node in others if not _waits_for_writes(node)]
    prepared = [node for node in others if _waits_for_writes(node)]
    _keep(others, plan, outside.ended)
    begun = (
        *_stop_drains(plan, outside.drainer),
        *_write_nodes(first, outside, refused),
        *_write_prepared(prepared, plan, outside, refused),
        *_start_drains(plan, outside, refused),
        *_perform(Place.AFTER_DRAIN, plan, outside, refused),
    )
    # No drain waits for what comes from here on: a notice may take seconds.
    untold = _notify(plan, sender, lambda node: node.todo.pending, ())
    put_off = tuple(_put_off(closing, untold, refused))
    _keep([node for node in closing if node.node not in refused], plan, outside.ended)
    done = (
        *_write_nodes(closing, outside, refused),
        # Clouds answer slowly, too.
        *_perform(Place.END, plan, outside, refused),
        *_publish(plan, outside, refused),
    )
    untold |= _notify(plan, sender, lambda node: node.todo.notices, refused)
    noted = _note(plan, outside, refused | untold)
    remembered = _remember(plan, (*begun, *done, *noted), outside, sender)
    return (*begun, *put_off, *done, *(one for one in noted if one.notable), *remembered)


def _put_off(closing: Iterable[NodePlan], untold: Collection[str], refused: set[str]) -> Iterator[Outcome]:
    """Put off the end of each case with a fact that could not be reported, because the record forgets it.

    A node that comes back into service does not wait for that.
    """
    for node in closing:
        write = node.todo.write
        if node.node in untold and write is not None and write.unschedulable is None:
            refused.add(node.node)
            why = "a Warning Event about the case can't be written now; the case ends after it"
            yield Outcome(node.node, outcome_name(node), Result.LATER, why)


def _keep(nodes: Iterable[NodePlan], plan: Plan, kept: EndedCases | None) -> None:
    """Keep the cases that end. A killed pass keeps a case twice rather than not at all."""
    if kept is None:
        return
    if ended := ended_cases(nodes, plan.now):
        guarded(f"{count_of(len(ended), 'ended case', 'are')} not kept", partial(kept.keep, ended), None)


def _waits_for_writes(node: NodePlan) -> bool:
    """Whether something else has to be written before the node."""
    todo = node.todo
    # Without the entry in the ledger, a deleted machine would free its place in the budget at once.
    return bool(todo.spaced or todo.messages or todo.at(Place.BEFORE) or todo.deletes_node)


def _write_prepared(
    nodes: Sequence[NodePlan], plan: Plan, outside: WritableOutside, refused: set[str]
) -> tuple[Outcome, ...]:
    """Write the ledger, and what else comes before the writes of these nodes, then the nodes.

    If that takes long, it goes on beside the pass, which then does nothing more for these nodes.
    """
    refusals = set(refused)

    def work() -> tuple[Outcome, ...]:
        _put_out(nodes, outside.outbox)
        return (
            *_write_ledger(nodes, plan, outside.writer, refusals),
            *_perform_before(nodes, outside, refusals),
            *_write_nodes(nodes, outside, refusals),
        )

    if not nodes and plan.ledger is None:
        return ()
    try:
        outcomes = outside.beside.write(("the ledger", "and what waits for it"), work)
    except Late as error:
        refused |= {node.node for node in nodes}
        writes = [node for node in nodes if node.todo.write is not None]
        return (
            *((Outcome("", WRITE_LEDGER.name, Result.LATER, str(error)),) if plan.ledger else ()),
            *(Outcome(node.node, outcome_name(node), Result.LATER, str(error)) for node in writes),
        )
    refused |= refusals
    return outcomes


def _put_out(nodes: Iterable[NodePlan], outbox: Outbox | None) -> None:
    """Keep the messages of profiles for their delivery, before the nodes say that they were sent.

    After a kill, or if a node can't be written, the next pass finds the same messages, with the same ids.
    """
    messages = [message for node in nodes for message in node.todo.messages]
    if messages and outbox is not None:
        guarded(f"{count_of(len(messages), 'message', 'are')} not kept", partial(outbox.keep, messages), None)


def _stop_drains(plan: Plan, drainer: Drains) -> Iterator[Outcome]:
    for node in plan.nodes:
        if node.todo.stop_drain:
            yield _attempt(node.node, STOP_DRAIN.name, partial(drainer.stop, node.node))


def _write_ledger(
    nodes: Iterable[NodePlan], plan: Plan, writer: ClusterWriter, refused: set[str]
) -> Iterator[Outcome]:
    if plan.ledger is None:
        return
    outcome = _attempt("", WRITE_LEDGER.name, partial(writer.write_ledger, plan.ledger))
    if outcome.result is not Result.DONE:
        # Without the last start the spacing can't be kept, so nothing starts; other nodes continue. The
        # last answers of a cloud are only queried again.
        refused |= {node.node for node in nodes if node.todo.spaced or node.todo.deletes_node}
        yield replace(outcome, result=Result.FAILED)


def _perform_before(
    nodes: Iterable[NodePlan], outside: WritableOutside, refused: set[str]
) -> Iterator[Outcome]:
    """Perform what a step needs before its patch. A node for which that fails takes no step in this pass.

    A killed pass may have done it without the step. The next pass does the same again, or waits for its end.
    """
    for node in nodes:
        for task in node.todo.at(Place.BEFORE) if node.node not in refused else ():
            outcome = _attempt(node.node, task.action.name, partial(task.perform, outside.client))
            if outcome.result is Result.FAILED and task.action.pauses and node.todo.write is not None:
                # Nothing of the step is written without it.
                outcome = replace(outcome, lost=tuple(sorted(node.todo.write.changes)))
            yield outcome
            if outcome.result is not Result.DONE:
                refused.add(node.node)
                break


def _write_nodes(nodes: Iterable[NodePlan], outside: WritableOutside, refused: set[str]) -> Sequence[Outcome]:
    """Write all of these nodes, side by side, so that all cordons come before the first drain.

    After a write that failed or hangs, the node's other actions are skipped.
    """
    writes = [
        (outcome_name(node), node.todo.write)
        for node in nodes
        if node.todo.write is not None and node.node not in refused
    ]
    outcomes = _attempt_writes(writes, outside)
    refused.update(outcome.node for outcome in outcomes if outcome.result is not Result.DONE)
    return outcomes


def _attempt_writes(writes: Sequence[tuple[str, NodeWrite]], outside: WritableOutside) -> Sequence[Outcome]:
    """Patch these nodes, each by the name of its action; a later pass sees to those without an answer."""
    outcomes = outside.side_by_side(
        {write.node: partial(_attempt_write, action, write, outside.writer) for action, write in writes}
    )
    return [
        Outcome(write.node, action, Result.LATER, str(outcome)) if isinstance(outcome, Late) else outcome
        for action, write in writes
        for outcome in (outcomes[write.node],)
    ]


def _attempt_write(action: str, write: NodeWrite, writer: ClusterWriter) -> Outcome:
    """Patch a node. The outcome says what of the patch did not stay, if a repetition is no help."""
    lost: set[str] = set()
    changed = False

    def patch() -> str:
        nonlocal changed
        try:
            answer = writer.patch_node(write)
        except Conflict:
            # Nobody has undone anything.
            changed = True
            raise
        except NotKept as error:
            lost.update(error.lost)
            raise
        except (Forbidden, Rejected):
            lost.update(write.changes)
            raise
        lost.update(answer.lost if answer is not None else ())
        return answer.said if answer is not None else ""

    return replace(_attempt(write.node, action, patch), lost=tuple(sorted(lost)), changed=changed)


def _remember(
    plan: Plan, outcomes: Iterable[Outcome], outside: WritableOutside, sender: _Sender
) -> Iterator[Outcome]:
    """Keep in the ledger which writes of nodes did not stay, so that each pause is longer than the last.

    What has to stay for the node to be protected is a Warning Event as well.
    """
    failed = {one.node: one for one in outcomes if one.lost}
    if not failed:
        return
    known = {node.node: node.todo.undone for node in plan.nodes if node.todo.undone is not None}
    for node in plan.nodes:
        write, outcome = node.todo.write or node.todo.noted, failed.get(node.node)
        if write is None or outcome is None:
            continue
        first = Undone(node.node, write.uid, (), "", 0, plan.now)
        known[node.node] = undone = known.get(node.node, first).again(outcome.lost, outcome.detail, plan.now)
        if not write.essential.isdisjoint(outcome.lost):
            notice = Notice(NOT_WRITTEN, undone.because, NoticeType.WARNING, once=undone.because)
            sender.settles(Notification(node.node, write.uid, notice))

    def write_ledger() -> None:
        ledger = outside.reader.ledger()
        outside.writer.write_ledger(replace(ledger, undone=tuple(known[name] for name in sorted(known))))

    beside = partial(outside.beside.write, ("the ledger", "with what did not stay"), write_ledger)
    outcome = _attempt("", WRITE_LEDGER.name, beside)
    if outcome.result is not Result.DONE:
        yield outcome


def _start_drains(plan: Plan, outside: WritableOutside, refused: Collection[str]) -> Iterator[Outcome]:
    """Start the drains, except those that a hold of many nodes stops that came after the ledger was read.

    `reconciler hold --all --now` writes the ledger first and lists the nodes then. So it either finds the
    record of this node, which is written already, or its hold is found here.
    """
    ordered = [node for node in plan.nodes if node.todo.drain is not None and node.node not in refused]
    if not ordered:
        return
    # A drain that runs is stopped by the next pass.
    begins = [node for node in ordered if not _goes_on(node)]
    written = [node for node in begins if node.todo.write is not None]
    holds: tuple[PersonHold, ...] = ()
    unread: dict[str, Outcome] = {}
    for nodes in ([node for node in begins if node.todo.write is None], written):
        if nodes and nodes is written:
            # What an earlier pass has asked for is older than the records of this one.
            outside.beside.forget(_HOLDS)
        try:
            if nodes:
                holds += outside.beside.read(_HOLDS, outside.reader.holds)
        except ClusterError as error:
            result = Result.LATER if isinstance(error, Late) else Result.FAILED
            why = f"the holds of all nodes can't be read: {error}"
            unread |= {node.node: Outcome(node.node, DRAIN.name, result, why) for node in nodes}
    now = outside.drainer.progress()
    for node in ordered:
        if node.node in unread:
            yield unread[node.node]
            continue
        held = next((hold for hold in holds if hold.stops and hold.applies(node.pool, plan.now)), None)
        if held is not None:
            yield Outcome(node.node, DRAIN.name, Result.LATER, held.words(node.node))
            continue
        assert node.todo.drain is not None
        if _has_just_ended(node.draining.progress, now.get(node.node)):
            # The order would begin another drain. The next pass reads the pods first.
            yield Outcome(node.node, DRAIN.name, Result.RUNNING)
            continue
        started = _attempt(node.node, DRAIN.name, partial(outside.drainer.start, node.todo.drain))
        # The drainer goes on after this pass: an order is not a drained node.
        yield replace(started, result=Result.RUNNING) if started.result is Result.DONE else started


def _goes_on(node: NodePlan) -> bool:
    progress = node.draining.progress
    return progress is not None and progress.goes_on(node.uid)


def _has_just_ended(seen: DrainProgress | None, now: DrainProgress | None) -> bool:
    """Whether the drain that the pass has seen running has ended since."""
    if seen is None or now is None or seen.uid != now.uid:
        return False
    return seen.phase is Phase.RUNNING and now.phase is not Phase.RUNNING


def _perform(
    place: Place, plan: Plan, outside: WritableOutside, refused: Collection[str]
) -> Iterator[Outcome]:
    """Perform the tasks of this place, which the records have. The next pass tries one that fails again.

    Each is sent beside the pass, because clouds and services answer slowly.
    """
    failed: Counter[ActionKind] = Counter()
    for node in plan.nodes:
        for task in node.todo.at(place) if node.node not in refused else ():
            kind = task.action
            if kind.gives_up and failed[kind] >= _MOST_FAILED:
                yield Outcome(node.node, kind.name, Result.LATER, kind.gives_up)
                continue
            perform = partial(task.perform, outside.client)
            beside = partial(outside.beside.write, task.what, perform, most=kind.most)
            outcome = _attempt(node.node, kind.name, beside)
            failed[kind] += outcome.result is Result.FAILED
            yield outcome


def _publish(plan: Plan, outside: WritableOutside, refused: Collection[str]) -> Iterator[Outcome]:
    on_nodes = (write for node in plan.nodes for write in node.todo.publications)
    for write in (*on_nodes, *plan.publications):
        if write.node not in refused:
            what, send = (write.action.name, write.node), partial(write.send, outside.client)
            yield _attempt(write.node, write.action.name, partial(outside.beside.write, what, send))


def _note(plan: Plan, outside: WritableOutside, refused: Collection[str]) -> Sequence[Outcome]:
    """Record which facts were reported; where that fails, the next pass reports them again."""
    writes = [
        ("update record", node.todo.noted)
        for node in plan.nodes
        if node.todo.noted is not None and node.node not in refused
    ]
    return _attempt_writes(writes, outside)


class _Sender:
    """Sends the notices of one pass, until too many of them fail."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._failed = 0

    def settles(self, notification: Notification) -> bool:
        """Send a notice, and return whether no later pass has to send it; raises LockLost."""
        if self._failed >= _MOST_FAILED:
            return False
        try:
            settled = self._notifier.notify(notification)
        except LockLost:
            raise
        except Exception as error:  # noqa: BLE001 - a notice that fails harms itself only
            internal(f"node {notification.node}: a notice can't be sent", error)
            return True
        self._failed += not settled
        return settled


def _notify(
    plan: Plan, sender: _Sender, chosen: Callable[[NodePlan], tuple[Notice, ...]], refused: Collection[str]
) -> set[str]:
    """Report to people what was done, and only what was written.

    Return the nodes with a fact that is to be reported again in the next pass.
    """
    untold: set[str] = set()
    for node in plan.nodes:
        # A fact that the record has already needs no other write: it is sent, then noted.
        write = node.todo.write or node.todo.noted
        if write is not None and node.node not in refused:
            for notice in chosen(node):
                settled = sender.settles(Notification(node.node, write.uid, notice))
                # A notice without a name of its own could come twice, so it is sent once at most.
                if notice.once and not settled:
                    untold.add(node.node)
    return untold


def _attempt(node: str, action: str, write: Callable[[], str | None]) -> Outcome:
    try:
        said = write()
    except (Conflict, NotFound, NotHere, Late) as error:
        return Outcome(node, action, Result.LATER, str(error))
    except (ClusterError, CloudError, NoThread) as error:
        return Outcome(node, action, Result.FAILED, str(error))
    except LockLost:
        raise
    except Exception as error:  # noqa: BLE001 - one node's write harms that node only
        return Outcome(node, action, Result.FAILED, internal(f"{action} of {node or 'the ledger'}", error))
    return Outcome(node, action, Result.DONE, said or "")
