"""The store: what the passes of one process remember of the nodes that rest, to decide about the others.

A node rests while nothing is to be decided or reported about it. A pass looks at the nodes that did not rest
before, at those that changed, and at those whose answers have become too old. Of all others, it counts.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from msgspec import Struct, field

from reconciler.model.clocks import own_times
from reconciler.model.event import Answer
from reconciler.model.node import Node
from reconciler.model.plan import DrainState, NodePlan, Plan
from reconciler.model.ports import Look
from reconciler.model.problems import guarded
from reconciler.model.snapshot import Aside, Assessment, FleetNode, NodeAssessment, Resting, Snapshot
from reconciler.model.values import replace
from reconciler.passes.assess import absences
from reconciler.passes.decide.known import rests
from reconciler.passes.decide.reporting import fleet_node
from reconciler.passes.parts import Parts
from reconciler.passes.plugin import Fleet, SourceContext
from reconciler.settings.schema import Settings


class _Rest(Struct, frozen=True):
    """A node that rests: what it counts as, and its readings as they count.

    `group` is the same for nodes that no decision tells apart. `answers` have the source of each reading,
    whether it reports an event, and when it was written (UTC), None if nobody says so. `absent` says which
    sources are not installed, and `until` is the last moment at which all answers are valid.
    """

    group: tuple[object, ...]
    answers: tuple[tuple[str, bool, datetime | None], ...]
    absent: tuple[str, ...]
    until: datetime | None


class _Counts(Struct):
    """What the nodes that rest count as. `dated` counts the answers of each source by their moments."""

    groups: Counter[tuple[object, ...]] = field(default_factory=Counter)
    examples: dict[tuple[object, ...], Node] = field(default_factory=dict)
    quiet: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    undated: Counter[str] = field(default_factory=Counter)
    absent: Counter[str] = field(default_factory=Counter)
    dated: dict[str, Counter[datetime]] = field(default_factory=dict)
    same: dict[tuple[object, ...], tuple[object, ...]] = field(default_factory=dict)

    def add(self, rest: _Rest, node: Node) -> None:
        """Count a node that rests."""
        self.groups[rest.group] += 1
        self.examples.setdefault(rest.group, node)
        self.absent.update(rest.absent)
        for source, reports, written in rest.answers:
            (self.events if reports else self.quiet)[source] += 1
            if written is None:
                self.undated[source] += 1
            else:
                self.dated.setdefault(source, Counter())[written] += 1

    def remove(self, rest: _Rest) -> None:
        """Count a node no more."""
        _less(self.groups, rest.group)
        if rest.group not in self.groups:
            del self.examples[rest.group]
            # A node that rests only after the decision about it may have found its group before.
            self.same.pop(rest.group, None)
        for because in rest.absent:
            _less(self.absent, because)
        for source, reports, written in rest.answers:
            _less(self.events if reports else self.quiet, source)
            if written is None:
                _less(self.undated, source)
            else:
                _less(self.dated[source], written)

    def last(self) -> dict[str, datetime]:
        """Return the newest answer of each source."""
        return {source: max(written) for source, written in self.dated.items() if written}

    def one_group(self, group: tuple[object, ...]) -> tuple[object, ...]:
        """Return the same object for equal groups, so that each is kept once."""
        return self.same.setdefault(group, group)


def _less(counter: Counter[Any], key: object) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


class Store:
    """What the passes of one process remember. Any error in it makes the next pass look at all nodes."""

    def __init__(self, parts: Parts) -> None:
        """Start with nothing, as a new process does."""
        self._parts = parts
        self._forget()

    def _forget(self) -> None:
        self._nodes: Mapping[str, Node] = {}
        self._seen: tuple[object, ...] = ()
        self._pending: set[str] | None = None
        self._active: set[str] = set()
        self._resting: dict[str, _Rest] = {}
        self._counts = _Counts()
        self._ends: list[tuple[datetime, str]] = []
        self._fleet: dict[str, tuple[FleetNode, str]] = {}
        self._ready: dict[str, tuple[Node, _Rest]] = {}
        self._kept: dict[str, NodePlan | None] = {}
        """The nodes that rest after a decision, with their plans if they are reported."""
        self._said: object = None
        self._shown: tuple[tuple[FleetNode, ...], frozenset[str]] | None = None

    def chosen(self, look: Look, now: datetime) -> tuple[Node, ...]:
        """Return the nodes that this pass has to look at, by name."""
        self._nodes = look.nodes
        if look.changed is None or self._pending is None:
            self._pending = None
            return self.all()
        self._pending |= look.changed
        while self._ends and self._ends[0][0] < now:
            until, name = heapq.heappop(self._ends)
            # A newer answer has a later end.
            if name in self._resting and self._resting[name].until == until:
                self._pending.add(name)
        return self._named(self._pending | self._active)

    def _named(self, names: Set[str]) -> tuple[Node, ...]:
        return tuple(self._nodes[name] for name in sorted(names) if name in self._nodes)

    def all(self) -> tuple[Node, ...]:
        """Return all nodes, by name."""
        return tuple(node for _, node in sorted(self._nodes.items()))

    def woken(self, context: SourceContext, said: object) -> tuple[Node, ...] | None:
        """Return the nodes that this pass has to look at if they are more than the chosen ones, else None.

        Those are all of them with other settings, other answers of a service, or another state of the agents:
        a node that rested may not rest any more. `said` is what else the plans of nodes follow from.
        """
        seen = (context.settings, context.agents, context.server, dict(context.memories))
        known = bool(self._seen) and self._seen[0] is context.settings and self._seen[1:] == seen[1:]
        heard, self._seen, self._said = said == self._said, seen, said
        if self._pending is None or (known and heard):
            return None
        if not known:
            self._pending = None
            return self.all()
        self._pending |= self._kept.keys()
        return self._named(self._pending | self._active)

    def settle(
        self, snapshot: Snapshot, assessment: Assessment, settings: Settings, now: datetime
    ) -> tuple[Snapshot, Assessment]:
        """Return both without the nodes that rest, which are counted aside. `now` is aware."""
        if self._pending is None:
            nodes, seen, said = self._nodes, self._seen, self._said
            self._forget()
            self._nodes, self._seen, self._said = nodes, seen, said
        # If this ends in an error, the next pass looks at all nodes.
        gone, self._pending = [name for name in self._pending or () if name not in self._nodes], None
        for name in gone:
            self._leave(name)
        # A label of another program may have to change on any node.
        may_rest = self._parts.labels(Fleet((), {}, settings, now, snapshot))[0] is None
        settled = self._parts.settled(settings)

        def judged(node: Node, assessed: NodeAssessment) -> tuple[_Rest | None, _Rest | None]:
            """Return what the node counts as if it rests now, and if it rests once a plan has shown it."""
            rest = self._rest(node, assessed, snapshot=snapshot, settings=settings, now=now)
            asked = settled if settings.manages(node.labels) else None
            if rest is None or not (assessed.events or asked is not None):
                return rest, None
            return None, rest if asked is None or asked(node) else None

        nothing: tuple[_Rest | None, _Rest | None] = (None, None)
        self._ready = {}
        for node in snapshot.nodes:
            self._leave(node.name, gone=False)
            assessed = assessment.of(node.name)
            what = f"node {node.name}: whether it rests is not known"
            looked, _ = guarded(what, partial(judged, node, assessed), nothing) if may_rest else (nothing, ())
            rest, ready = looked
            if ready is not None:
                self._ready[node.name] = node, ready
            self._enter(node, rest, settings)
        self._pending = set()
        return self._without_resting(snapshot, assessment)

    def keep(self, plan: Plan) -> None:
        """Let those nodes rest of which the plan was only to be known, with their plans."""
        # If this ends in an error, the next pass looks at all nodes.
        self._pending = None
        plans = {node.node: node for node in plan.nodes if node.node in self._ready}
        for name, (node, rest) in self._ready.items():
            planned = plans.get(name)
            # Of a drain that this process remembers, another one knows nothing.
            if planned is None or planned.draining == DrainState():
                self._rests(node, rest)
                self._kept[name] = planned
        self._ready, self._pending = {}, set()

    def _without_resting(self, snapshot: Snapshot, assessment: Assessment) -> tuple[Snapshot, Assessment]:
        counts = self._counts
        if self._shown is None:
            shown = [shown for _, shown in sorted(self._fleet.items())]
            self._shown = tuple(node for node, _ in shown), frozenset(uid for _, uid in shown)
        fleet, uids = self._shown
        plans = {name: plan for name, plan in self._kept.items() if plan is not None}
        # What is said of an event ends with the answer that reports it.
        ends = (self._resting[name].until for name, plan in plans.items() if plan.events)
        aside = Aside(
            groups=tuple(Resting(counts.examples[group], count) for group, count in counts.groups.items()),
            nodes=Others(self._resting, self._nodes),
            fleet=fleet,
            uids=uids,
            quiet=counts.quiet,
            events=counts.events,
            last=counts.last(),
            undated=counts.undated.keys(),
            absent=counts.absent,
            plans=plans,
            moments=[end + timedelta.resolution for end in ends if end is not None],
        )
        active = tuple(node for node in snapshot.nodes if node.name in self._active)
        nodes = {name: assessed for name, assessed in assessment.nodes.items() if name in self._active}
        absent = Counter(because for assessed in nodes.values() for because in absences(assessed))
        return replace(snapshot, nodes=active, aside=aside), Assessment(nodes, absent)

    def _rest(
        self, node: Node, assessed: NodeAssessment, *, snapshot: Snapshot, settings: Settings, now: datetime
    ) -> _Rest | None:
        """Return what the node counts as if it rests, else None."""
        keys, parts = settings.keys.names, self._parts
        if assessed.problem or node.name in snapshot.problems.nodes or keys.record_kept in node.labels:
            return None
        if not rests(node, assessed, settings, parts) or parts.outlived(node, keys.prefix).any:
            return None
        latest = own_times(now, snapshot.disagreement).latest
        if any(reading.as_of is not None and reading.as_of > latest for reading in assessed.readings):
            return None
        settings.manages(node.labels)
        labels = tuple(sorted(node.labels.items()))
        group = (labels, node.taints, node.pool, node.zone)
        here = [reading for reading in assessed.readings if reading.installed]
        ends = [reading.believed_until for reading in here if reading.believed_until is not None]
        return _Rest(
            self._counts.one_group(group),
            tuple((reading.source, reading.answer is Answer.EVENT, reading.as_of) for reading in here),
            tuple(absences(assessed)),
            min(ends, default=None),
        )

    def _leave(self, name: str, *, gone: bool = True) -> None:
        self._active.discard(name)
        self._kept.pop(name, None)
        if gone and self._fleet.pop(name, None) is not None:
            self._shown = None
        rest = self._resting.pop(name, None)
        if rest is not None:
            self._counts.remove(rest)

    def _enter(self, node: Node, rest: _Rest | None, settings: Settings) -> None:
        shown = fleet_node(node, settings), node.uid
        if self._fleet.get(node.name) != shown:
            self._fleet[node.name], self._shown = shown, None
        if rest is None:
            self._active.add(node.name)
        else:
            self._rests(node, rest)

    def _rests(self, node: Node, rest: _Rest) -> None:
        self._active.discard(node.name)
        self._resting[node.name] = rest
        self._counts.add(rest, node)
        if rest.until is not None:
            heapq.heappush(self._ends, (rest.until, node.name))


class Others(Mapping[str, Node]):
    """The nodes that rest, by name."""

    def __init__(self, resting: Mapping[str, object], nodes: Mapping[str, Node]) -> None:
        """Show those of the nodes whose names are in `resting`."""
        self._resting, self._nodes = resting, nodes

    def __getitem__(self, name: str) -> Node:
        """Return a node that rests."""
        if name not in self._resting:
            raise KeyError(name)
        return self._nodes[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over their names."""
        return iter(self._resting)

    def __len__(self) -> int:
        """Return how many rest."""
        return len(self._resting)
