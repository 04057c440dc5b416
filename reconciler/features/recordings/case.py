"""A recorded case: what a pass read of a node and what counts beside it, and what was decided.

The file has the policy, and what was read, in the form of the program's own values. Nothing in it is raw text
of the person who sends it: see `standins.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from msgspec import Meta, Struct

from reconciler.drain.ahead import PodsAhead
from reconciler.model import limits
from reconciler.model.clocks import Disagreement
from reconciler.model.errors import Forbidden, SourceError
from reconciler.model.explanation import Examination, NodeExplanation
from reconciler.model.instructions import PersonHold
from reconciler.model.machine import Machine, MachineRef
from reconciler.model.node import READ_LABELS, US, Node, Wanted
from reconciler.model.plan import NodePlan, actions
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import Look, LookRequest, Outside, attempt
from reconciler.model.problems import BUDGETS, LEDGER, NAMESPACES, PODS, Unseen
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.snapshot import (
    Agents,
    Ledger,
    Remediator,
    Replaced,
    Resting,
    Self,
    ServerVersion,
    Snapshot,
    Undone,
)
from reconciler.model.values import Name, replace
from reconciler.passes.assess import assess
from reconciler.passes.decide.known import rests
from reconciler.passes.parts import Parts
from reconciler.report.explain import explain_node
from reconciler.report.values import Document, plain
from reconciler.settings.schema import Settings

MOST_NODES, MOST_PODS = 100, 500


class Room(Struct, frozen=True):
    """How many other nodes with news, and how many pods, a case may have."""

    nodes: int = MOST_NODES
    pods: int = MOST_PODS


ROOMS = (Room(), Room(20, 200), Room(5, 50), Room(0, 10))
"""The next one is for a case that does not fit into a file."""


class _Group(Struct, frozen=True):
    """Nodes without news that count alike, with one of them."""

    node: Node
    count: int


class _Agents(Struct, frozen=True):
    """The state of the node agent: the recorded nodes whose agent is not ready, and those without one."""

    installed: bool = False
    not_ready: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    problem: str = ""


class _Reconciler(Struct, frozen=True):
    """Who acts on the nodes."""

    running: Running = Running.UNKNOWN
    holder: str = ""
    last_pass: datetime | None = None
    interval: timedelta | None = None
    mode: str = ""
    lock: str = ""
    since: datetime | None = None
    others: tuple[str, ...] = ()
    yields_to: str = ""
    because: str = ""


class _Ledger(Struct, frozen=True):
    """What belongs to no node, without the answers of services."""

    last_start: datetime | None = None
    replaced: tuple[Replaced, ...] = ()
    lasted: Mapping[str, timedelta] = {}
    holds: tuple[PersonHold, ...] = ()
    undone: tuple[Undone, ...] = ()
    unread: str = ""


Pods = Annotated[tuple[Pod, ...], Meta(max_length=MOST_PODS)]
NamespaceLabels = Mapping[str, Mapping[str, Name]]


class Case(Struct, frozen=True):
    """What was read `at` (UTC) of the node with this name, and what its decision depends on.

    `others` are nodes with news, and `groups` count those without. `left_out` are nodes with news that did
    not fit. `pods` are those of the node, and `budgets` those that select one of them.
    """

    at: datetime
    node: Node
    others: Annotated[tuple[Node, ...], Meta(max_length=MOST_NODES)] = ()
    groups: Annotated[tuple[_Group, ...], Meta(max_length=limits.INSTANCES)] = ()
    left_out: int = 0
    pods: Pods = ()
    budgets: Annotated[tuple[PodDisruptionBudget, ...], Meta(max_length=MOST_PODS)] = ()
    namespaces: Annotated[NamespaceLabels, Meta(max_length=MOST_PODS)] = {}
    agents: _Agents = _Agents()
    remediator: Remediator = Remediator()
    server: ServerVersion = ServerVersion()
    ledger: _Ledger = _Ledger()
    machines: tuple[Machine, ...] = ()
    reconciler: _Reconciler = _Reconciler()
    own_node: str = ""
    unseen: tuple[Unseen, ...] = ()
    disagreement: Disagreement | None = None


def read_case(
    name: str, snapshot: Snapshot, settings: Settings, parts: Parts, now: datetime, room: Room = ROOMS[0]
) -> Case:
    """Return what a snapshot has about the node, and of others what counts for it.

    `now` (aware) is that of the plan.
    """
    kept_labels = READ_LABELS | settings.label_keys() | parts.wants(settings).labels
    own = f"{settings.keys.prefix}/"

    def cut(node: Node) -> Node:
        labels = {key: each for key, each in node.labels.items() if key in kept_labels or key.startswith(own)}
        return replace(node, labels=labels, resource_version="", allocatable={})

    assessment = assess(snapshot, now)
    groups: dict[tuple[object, ...], _Group] = {}
    news: list[Node] = []
    for node in map(cut, snapshot.nodes):
        if node.name == name:
            continue
        if not rests(node, assessment.of(node.name), settings, parts):
            news.append(node)
            continue
        key = (tuple(sorted(node.labels.items())), node.taints, node.pool, node.zone)
        before = groups.get(key)
        groups[key] = replace(before, count=before.count + 1) if before is not None else _Group(node, 1)
    node = cut(next(node for node in snapshot.nodes if node.name == name))
    pods = [replace(pod, resource_version="") for pod in snapshot.pods.get(name, ())][: room.pods]
    budgets = [budget for budget in snapshot.budgets if any(map(budget.covers, pods))][:MOST_PODS]
    unplaced = [pod for pod in snapshot.pods.get("", ()) if any(budget.covers(pod) for budget in budgets)]
    named = {pod.namespace for pod in pods}
    counted = sorted(groups.values(), key=lambda group: -group.count)
    whole = (node, *news[: room.nodes])
    agents, ledger, known = snapshot.agents, snapshot.ledger, {each.name for each in whole}
    # A plan is made at the time of the slower clock.
    behind = snapshot.disagreement.behind if snapshot.disagreement is not None else timedelta()
    return Case(
        at=(now + behind).replace(microsecond=0),
        node=node,
        others=tuple(news[: room.nodes]),
        groups=tuple(counted[: limits.INSTANCES]),
        left_out=len(news[room.nodes :]) + sum(group.count for group in counted[limits.INSTANCES :]),
        pods=(*pods, *unplaced)[: room.pods],
        budgets=tuple(replace(budget, resource_version="") for budget in budgets),
        namespaces={
            namespace: labels
            for namespace, labels in snapshot.for_settings.namespaces.items()
            if namespace in named
        },
        agents=_Agents(
            agents.installed,
            tuple(sorted(agents.not_ready & known)),
            tuple(sorted(known - agents.covered)) if agents.covered is not None else (),
            agents.problem,
        ),
        remediator=snapshot.remediator,
        server=snapshot.for_settings.server,
        ledger=_Ledger(
            ledger.last_start,
            tuple(machine for machine in ledger.replaced if machine.node in known),
            {str(kind): each for kind, each in ledger.lasted.items()},
            ledger.holds,
            tuple(write for write in ledger.undone if write.node in known),
            ledger.unread,
        ),
        machines=tuple(each for of, each in snapshot.for_settings.machines.items() if of in known),
        reconciler=_Reconciler(
            **{field: getattr(snapshot.reconciler, field) for field in _Reconciler.__struct_fields__}
        ),
        own_node=snapshot.itself.node or "",
        unseen=snapshot.problems.unseen,
        disagreement=snapshot.disagreement,
    )


def answers_of(snapshot: Snapshot, parts: Parts, nodes: Iterable[Node]) -> dict[str, Any]:
    """Return the last answers of the polled sources about these nodes, by the name of the source."""
    nodes, answers = tuple(nodes), dict[str, Any]()
    for source in parts.sources.polled:
        memory = snapshot.memories.get(source.name)
        if memory is not None:
            names = source.scopes(nodes)
            kept = replace(
                memory,
                answers=tuple(
                    replace(
                        answer,
                        found=tuple(pair for pair in answer.found if pair[0] in names[answer.scope]),
                        unseen=tuple(vm for vm in answer.unseen if vm in names[answer.scope]),
                        alone=tuple(vm for vm in answer.alone if vm.name in names[answer.scope]),
                    )
                    for answer in memory.answers
                    if answer.scope in names
                ),
                paused=tuple(pair for pair in memory.paused if pair[0] in names),
            )
            if kept != source.kept.empty:
                answers[source.name] = source.kept.code.write(kept)
    return answers


class _Reader:
    """The reads of a pass, from a case (ClusterReader, PartialReader)."""

    def __init__(self, case: Case, answers: Mapping[str, str]) -> None:
        self._case, self._answers = case, answers
        self._nodes = {node.name: node for node in (case.node, *case.others)}
        self._refused = {unseen.what: unseen.needs for unseen in case.unseen}

    def _check(self, what: str) -> None:
        if what in self._refused:
            raise Forbidden("not recorded", status=403, needs=self._refused[what])

    def look(self, request: LookRequest) -> Look:
        case, found = self._case, self._case.agents
        covered = frozenset(self._nodes) - frozenset(found.without) if found.without else None
        agents = Agents(found.installed, frozenset(found.not_ready), covered, found.problem)
        return Look(
            self._nodes,
            agents=agents if request.agents else Agents(),
            remediator=case.remediator if request.remediator else Remediator(),
            server=case.server if request.server else ServerVersion(),
            ledger=attempt(self.ledger),
        )

    def completed(self, nodes: Sequence[Node], wanted: Wanted) -> Sequence[Node]:
        del wanted
        return nodes

    def resting(self) -> tuple[Resting, ...]:
        return tuple(Resting(group.node, group.count) for group in self._case.groups)

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        del placement
        self._check(PODS)
        return tuple(pod for pod in self._case.pods if node in (None, pod.node))

    def pods_with(self, label: str) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods() if label in pod.labels)

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        self._check(BUDGETS)
        return self._case.budgets

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        self._check(NAMESPACES)
        return self._case.namespaces

    def ledger(self) -> Ledger:
        self._check(LEDGER)
        ledger = self._case.ledger
        return Ledger(
            ledger.last_start,
            replaced=ledger.replaced,
            lasted=ledger.lasted,  # type: ignore[arg-type]  # a Kind is equal to its text
            holds=ledger.holds,
            undone=ledger.undone,
            unread=ledger.unread,
            parts=self._answers,
        )

    def holds(self) -> tuple[PersonHold, ...]:
        return self.ledger().holds

    def disagreement(self) -> Disagreement | None:
        return self._case.disagreement

    def cordoned_by_us(self, nodes: Sequence[Node]) -> frozenset[str]:
        return frozenset(node.name for node in nodes if node.cordon_of == US)

    def uncordoned_by(self, node: Node) -> str:
        return node.uncordoned_by

    def unplaced(self) -> tuple[Pod, ...]:
        return ()

    def attached(self, staying: Mapping[str, frozenset[str]]) -> Mapping[str, tuple[str, ...]]:
        del staying
        return {}


class _Machines:
    """The machines of a case (MachineReader)."""

    def __init__(self, case: Case) -> None:
        self._by_node = {machine.ref.node: machine for machine in case.machines}

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        return tuple(
            replace(self._by_node[ref.node], ref=ref)
            if ref.node in self._by_node
            else Machine(ref, problem="it was not recorded")
            for ref in refs
        )


Examine = Callable[..., Examination]


class Replay(Struct, frozen=True):
    """What a program decides about the node of a case."""

    found: Examination
    explained: NodeExplanation

    @property
    def decision(self) -> Document:
        """What is decided about the node, without reasons in words."""
        return decision_of(self.explained)


def replayed(
    case: Case, answers: Mapping[str, Any], settings: Settings, parts: Parts, examine: Examine
) -> Replay:
    """Return what this program decides about the node; `examine` is that of `run.py`.

    Raises SourceError if an answer can't be read.
    """
    sources = {source.name: source for source in parts.sources.polled}
    for name, document in answers.items():
        if name not in sources:
            raise SourceError(f"answers.{name}: there is no such source")
        try:
            sources[name].kept.code.read(document)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = limits.why_unreadable(error)
            raise SourceError(f"the last answer of {name} can't be read: {why}") from error
    texts = {name: json.dumps(document, separators=(",", ":")) for name, document in answers.items()}
    reader = _Reader(case, texts)
    outside = Outside(
        reader=reader,
        ahead=PodsAhead(reader),
        machines=_Machines(case) if case.machines else None,
        itself=Self(node=case.own_node or None),
        reconciler=Reconciler(
            **{field: getattr(case.reconciler, field) for field in _Reconciler.__struct_fields__}
        ),
    )
    found = examine(outside, settings, case.at, with_preview=True, also_pods=True)
    found = replace(found, plan=replace(found.plan, nodes=tuple(map(_without_room, found.plan.nodes))))
    node = next(node for node in found.snapshot.nodes if node.name == case.node.name)
    assessed = assess(found.snapshot, found.plan.now).of(node.name)
    explained = explain_node(node, found, assessed, settings, found.plan.now)
    if explained.drain is not None:
        explained = replace(explained, drain=replace(explained.drain, room=()))
    return Replay(found, explained)


def _without_room(plan: NodePlan) -> NodePlan:
    """Return the plan without room on other nodes, of which a case has too little."""
    preview = plan.draining.preview
    if preview is None:
        return plan
    return replace(plan, draining=replace(plan.draining, preview=replace(preview, room=())))


def decision_of(explained: NodeExplanation) -> Document:
    """Return what is decided about a node, without reasons in words: what two programs may be compared by."""
    plan, schedule, drain = explained.plan, explained.plan.schedule, explained.drain
    counts = Counter(pod.action for pod in drain.pods) if drain is not None else None
    decision: Document = plain(
        {
            "managed": not explained.unmanaged,
            "readings": {each.source: each.answer for each in explained.sources},
            "events": [
                {
                    "kind": judged.event.condition or judged.event.kind,
                    "status": judged.event.status,
                    "notBefore": judged.event.not_before,
                    "sources": judged.event.sources,
                    "asksForDrain": judged.asks,
                    "deadline": judged.deadline,
                }
                for judged in plan.events
            ],
            "stateBefore": plan.before,
            "state": plan.after,
            "actions": [kind.name for kind in actions(plan)],
            "holds": [{"check": hold.code, "until": hold.until} for hold in plan.holds],
            "plannedStart": schedule.planned_start if schedule is not None else None,
            "latestStart": schedule.latest_start if schedule is not None else None,
            "missed": schedule.missed if schedule is not None else None,
            "forecast": schedule.forecast if schedule is not None else None,
            "outcome": plan.outcome.result if plan.outcome is not None else None,
            "unguarded": plan.unguarded.why if plan.unguarded is not None else None,
            "pods": dict(sorted(counts.items())) if counts is not None else None,
        }
    )
    return decision
