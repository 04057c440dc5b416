"""What a plan reports besides its actions: notes, moments, lengths of cases, nodes, sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter

from msgspec import Struct

from reconciler.calendar.occurrences import FOREVER
from reconciler.model import limits
from reconciler.model.event import Answer, Kind, Reading
from reconciler.model.instructions import Instructions, PersonHold
from reconciler.model.limits import count_of
from reconciler.model.node import Node
from reconciler.model.plan import Actions, DrainState, NodePlan, SourceState
from reconciler.model.polling import AnyMemory
from reconciler.model.problems import guarded
from reconciler.model.record import State
from reconciler.model.snapshot import FleetNode, Ledger, Resting, Snapshot
from reconciler.passes.decide.draining import running
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.settings.schema import Settings
from reconciler.starts.budget import pool_of
from reconciler.starts.times import NEAR

LONGEST = timedelta(days=1)
"""A case that took longer says nothing about the next one."""


def lasted(
    before: Mapping[Kind, timedelta], plans: Iterable[NodePlan], now: datetime
) -> Mapping[Kind, timedelta]:
    """Return how long such cases take by kind, with those that end `now` (UTC), which count a third."""
    found = dict(before)
    for plan in plans:
        case = plan.ended
        began = case.facts.drain_began if case is not None else None
        # Only where we ask the platform does the maintenance begin when we want it to.
        if case is None or began is None or not case.events or not case.asked:
            continue
        kind = max((event.kind for event in case.events), key=lambda kind: kind.severity)
        took = now - began
        if timedelta() < took <= LONGEST:
            known = found.get(kind, took)
            found[kind] = timedelta(seconds=(2 * known + took).total_seconds() // 3)
    return found if found != before else before


def uids_of(snapshot: Snapshot) -> frozenset[str]:
    """Return the UIDs of all nodes."""
    uids = snapshot.aside.uids
    return uids if uids is not None else frozenset(node.uid for node in snapshot.nodes)


def fleet_nodes(snapshot: Snapshot, settings: Settings) -> tuple[FleetNode, ...]:
    """Return every node by name."""
    if snapshot.aside.fleet is not None:
        return snapshot.aside.fleet
    return tuple(fleet_node(node, settings) for node in sorted(snapshot.nodes, key=attrgetter("name")))


def fleet_node(node: Node, settings: Settings) -> FleetNode:
    """Return what is shown of a node; one that breaks the program is not managed."""
    what = f"node {node.name} can't be shown"
    return guarded(what, partial(_shown, node, settings), None)[0] or _broken(node)


def _shown(node: Node, settings: Settings) -> FleetNode:
    return FleetNode(node.name, node.zone, pool_of(node), settings.manages(node.labels), node.out_of_service)


def _broken(node: Node) -> FleetNode:
    return FleetNode(node.name, managed=False, closed="an error in this program, see its log")


_NAMED = 3
"""Nodes that a note names."""

NEXT_STEP = timedelta(seconds=1)
"""How soon after a step that a feature has taken with a node the next one may follow: each pass takes one."""


def is_reported(plan: NodePlan) -> bool:
    """Whether the report includes the node."""
    return bool(
        plan.events
        or plan.holds
        or plan.transitions
        or plan.status.unread
        or plan.status.instructions != Instructions()
        or plan.acts
        or plan.todo.write is not None
        or plan.todo.publications
        or plan.after is not State.OPERATIONAL
        or any(part.news for part in plan.of_features.values())
    )


def expiries(seen: Iterable[NodeFacts]) -> Iterable[datetime]:
    """Return when a reading of a node with an event or a record becomes too old to use."""
    return _known(partial(_silence, node) for node in seen if node.judged or node.record is not None)


def _silence(node: NodeFacts) -> tuple[datetime, ...]:
    return tuple(
        reading.believed_until + timedelta.resolution
        for reading in node.assessment.readings
        if reading.believed_until is not None and reading.answer is not Answer.UNKNOWN
    )


def moments(plans: Iterable[NodePlan], now: datetime) -> Iterable[datetime]:
    """Return when a hold, an event or a drain of these plans ends, and when a node can't wait any more."""
    return _known(partial(_moments, plan, now) for plan in plans)


def _known(moments_of: Iterable[Callable[[], Iterable[datetime]]]) -> Iterator[datetime]:
    """Yield the moments of each node; those of one whose data ends in an error are not known."""
    for work in moments_of:
        found, _ = guarded("a plan or a reading ends at an unknown time", work, ())
        yield from found


def _moments(plan: NodePlan, now: datetime) -> tuple[datetime, ...]:
    drain = plan.todo.drain
    ends = drain.since + drain.timeout if drain is not None and drain.timeout is not None else None
    found = (ends, *(hold.until for hold in plan.holds), *(event.until for event in plan.events))
    found = (*found, *(event.after_drain.until for event in plan.events))
    found = (*found, *(hold.asks for hold in plan.holds))
    found = (*found, plan.todo.undone.until if plan.todo.undone is not None else None)
    for part in plan.of_features.values():
        found = (*found, *part.moments(now), *((now + NEXT_STEP,) if part.moved else ()))
    # It is reported if no drain has begun by then. A drain that is ordered may wait.
    progress = plan.draining.progress
    waits = [progress.slot.counts_from if progress is not None else None]
    waits += [event.lost_from for event in plan.events if event.asks]
    starts = [
        event.times.earliest
        for event in plan.events
        if event.times is not None and event.times.earliest < FOREVER
    ]
    waits += starts
    if plan.after is State.IN_MAINTENANCE:
        # Until then the node may come back first.
        waits += [start - NEAR for start in starts]
    if plan.schedule is not None:
        waits += [plan.schedule.planned_start, plan.schedule.ends, plan.schedule.forecast_until]
    if plan.record is not None and plan.record.facts.will_be_missed is not None:
        waits.append(plan.record.facts.will_be_missed.warns)
    return tuple(
        moment
        for moment in (*found, *(moment for moment in waits if moment is not None and moment > now))
        if moment is not None
    )


def _count(nodes: Iterable[Node], has: Callable[[Node], bool]) -> int:
    """Return how many nodes have it. One whose data ends in an error is not counted."""
    return sum(1 for node in nodes if guarded("a node is not counted", partial(has, node), False)[0])


def notes(
    snapshot: Snapshot, fleet: Sequence[Node], context: PassContext, resting: Collection[Resting] = ()
) -> tuple[str, ...]:
    """Return the notes about the whole cluster, one sentence each."""
    settings = context.settings

    def count(has: Callable[[Node], bool]) -> int:
        return _count(fleet, has) + sum(part.count for part in resting if has(part.node))

    notes = list(snapshot.problems.cluster)
    if snapshot.disagreement is not None:
        notes.insert(0, snapshot.disagreement.words(context.now))
    copies = {node.name: node.copied for node in snapshot.nodes if node.copied}
    if copies:
        names = ", ".join(sorted(copies)[:_NAMED]) + (" and others" if len(copies) > _NAMED else "")
        keys = ", ".join(sorted({key for copied in copies.values() for key in copied}))
        notes.append(f"{names} has data of another node, which is ignored and removed: {keys}")
    remediator, coexist = snapshot.remediator, settings.coexist
    tainted = count(lambda node: bool(node.remediator_taint))
    if remediator.config_found or tainted:
        freeze = "drains for Freeze too" if remediator.on_freeze else "does not drain for Freeze"
        notes.append(
            f"AKS's remediator is active: it drains for Redeploy and Preempt by default, {freeze}, "
            f"and has tainted {count_of(tainted, 'node')} (coexist.aksRemediator: {coexist.aks_remediator})"
        )
    # A missing permission is in the list of what was not seen.
    if remediator.problem and not remediator.needs:
        notes.append(f"AKS's remediator-config can't be read: {remediator.problem}")
    karpenter = count(lambda node: node.is_karpenter)
    if karpenter:
        left = f"left to it: {settings.left_to_karpenter} (coexist.karpenter.leave)"
        notes.append(f"Karpenter manages {count_of(karpenter, 'node')}; {left}")
    return tuple(notes)


def not_installed(context: PassContext) -> tuple[str, ...]:
    """Return a note about each source that is not installed, or updates nothing, with the number of nodes."""
    aside = context.snapshot.aside
    absent = Counter(context.assessment.absent)
    absent.update(aside.absent)
    total = len(context.snapshot.nodes) + len(aside.nodes)
    return tuple(
        f"{because} ({count} of {count_of(total, 'node')})" for because, count in sorted(absent.items())
    )


def of_the_future(seen: Iterable[NodeFacts], ledger: bool) -> tuple[str, ...]:
    """Return a note about times of ours in the future; `ledger` is whether the ledger has some."""
    names = sorted(node.name for node in seen if node.of_the_future)
    found = [f"the records of {count_of(len(names), 'node')} ({', '.join(names[:_NAMED])})"] if names else []
    found += ["the ledger"] if ledger else []
    if not found:
        return ()
    return (f"a clock was ahead: times in the future in {' and '.join(found)} count as now",)


def unknown_parts(seen: Iterable[NodeFacts], known: Set[str]) -> Iterator[str]:
    """Yield a note about each part and kind of claims in records that no feature knows, with its nodes."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for node in seen:
        claims = {claim.kind for claim in node.record.of_features} if node.record is not None else set()
        for name in node.case.parts.keys() - known:
            ends = "until their cases end"
            nodes.setdefault((limits.excerpt(name), ends), []).append(node.name)
        for kind in claims - known:
            nodes.setdefault((f"the claim {kind}", "until a person releases the nodes"), []).append(node.name)
    for (name, ends), names in sorted(nodes.items()):
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield (
            f"{name} in the records of {', '.join(sorted(names)[:_NAMED])}{more} is of a feature that this "
            f"program does not have; it stays as it is {ends}"
        )


def unknown_in_ledger(ledger: Ledger, known: Collection[str]) -> Iterator[str]:
    """Yield a note about the parts of the ledger that no plugin of this program knows."""
    names = [limits.excerpt(name) for name in sorted(ledger.parts.keys() - known)]
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield (
            f"what the ledger has under {', '.join(names[:_NAMED])}{more} is of a plugin that this program "
            "does not have; it stays as it is"
        )


def holds_of_people(snapshot: Snapshot, now: datetime) -> tuple[PersonHold, ...]:
    """Return the holds of all nodes, or of a pool, that are in force."""
    return tuple(hold for hold in snapshot.ledger.holds if not hold.word.ended(now))


def orphaned_drains(snapshot: Snapshot, planned: Collection[str]) -> Iterable[NodePlan]:
    """Yield a stop for every drain of a node without a plan."""
    for name, drained in sorted(snapshot.drains.items()):
        if name not in planned and running(drained):
            state = State.OPERATIONAL
            stopped, shown = Actions(stop_drain=True), DrainState(progress=drained)
            yield NodePlan(name, "", "", state, state, todo=stopped, draining=shown)


class _Tally(Struct):
    """The answers of one source so far; `polled` is whether its memory says when it was asked."""

    last: datetime | None = None
    polled: bool = False
    events: int = 0
    quiet: int = 0
    unknown: int = 0

    def add(self, reading: Reading, now: datetime) -> None:
        if reading.answer is Answer.NO_EVENT:
            self.quiet += 1
        elif reading.answer is Answer.EVENT:
            self.events += 1
        else:
            self.unknown += 1
        if self.polled:
            return
        at = reading.as_of
        if at is None and reading.answer is not Answer.UNKNOWN:
            # What stands on the node itself was read with the node.
            at = now
        self._see(at, now)

    def add_aside(self, quiet: int, events: int, last: datetime | None, now: datetime) -> None:
        """Add so many answers that report nothing or something; the newest is of the moment `last` (UTC)."""
        self.quiet += quiet
        self.events += events
        if not self.polled:
            self._see(last, now)

    def _see(self, at: datetime | None, now: datetime) -> None:
        if at is not None and (self.last is None or self.last < at):
            # A node can write any moment.
            self.last = min(at, now)


def source_states(context: PassContext) -> tuple[SourceState, ...]:
    """Return what the sources answered, sorted by name; what is not installed on a node gives no answer."""
    now, found = context.now, {name: _Tally() for name in context.reading_names}
    for name, memory in context.snapshot.memories.items():
        found[name] = _Tally(_asked(memory), polled=True)
    # This loop runs for each reading of each node, so it makes no value of its own.
    for node in context.assessment.nodes.values():
        for reading in node.readings:
            if reading.installed:
                tally = found.get(reading.source)
                if tally is None:
                    tally = found[reading.source] = _Tally()
                tally.add(reading, now)
    aside = context.snapshot.aside
    for name in aside.quiet.keys() | aside.events.keys():
        last = now if name in aside.undated else aside.last.get(name)
        counts = aside.quiet.get(name, 0), aside.events.get(name, 0)
        found.setdefault(name, _Tally()).add_aside(*counts, last, now)
    return tuple(
        SourceState(name, tally.last, tally.events, tally.quiet, tally.unknown)
        for name, tally in sorted(found.items())
    )


def _asked(memory: AnyMemory) -> datetime | None:
    """Return when a polled source was last asked with success, None if it never was."""
    return max((answer.asked for answer in memory.answers if not answer.problem), default=None)
