"""What keeps each node from a drain now, by workload: read, judged as if it had to go, and summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from msgspec import Struct, field

from reconciler.drain import judge
from reconciler.drain.refusal import BudgetIndex, asks, asks_none, with_unplaced
from reconciler.drain.workloads import workload_of
from reconciler.features.readiness.findings import (
    REFUSALS,
    Finding,
    KeptByPeople,
    PeopleCode,
    PodFinding,
    Policy,
    Readiness,
    WebhookAnswers,
    WebhookRefusal,
    WorkloadFindings,
    leaving,
    staying,
)
from reconciler.features.readiness.room import Mounts, Shelter
from reconciler.model import limits
from reconciler.model.event import Kind
from reconciler.model.findings import FindingCode, Severity, Workload
from reconciler.model.instructions import Instructions, PersonHold, instructions_of, resume_command
from reconciler.model.limits import count_of
from reconciler.model.node import POOL_ANNOTATIONS, Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget, Volume
from reconciler.model.ports import ClusterReader, LookRequest, VolumeReader, read_of
from reconciler.model.problems import BUDGETS, LEDGER, NAMESPACES, PODS, Gaps, Unseen, guarded
from reconciler.model.record import KnownEvent
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.model.snapshot import ReadForSettings, Snapshot
from reconciler.model.values import replace
from reconciler.profiles.orders import drain_order, evicting_setting
from reconciler.settings.schema import Settings

VOLUMES = "PersistentVolumes"
WEBHOOKS = "the answers of admission webhooks"
"""What is also needed here, as `Unseen.what`."""


class ClusterState(Struct, frozen=True):
    """The cluster as it was read. What may not be read is empty, and in `unseen`.

    `holds` are those of all nodes and of pools.
    """

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    holds: tuple[PersonHold, ...] = ()
    unseen: tuple[Unseen, ...] = ()


def read(reader: ClusterReader, volumes: VolumeReader, settings: Settings) -> ClusterState:
    """Return what readiness needs of the cluster; raises ClusterError, but not for what we may not read.

    Only the nodes have to be readable.
    """
    gaps = Gaps(rehearsed=True)
    # Any label may matter for the placement of a pod.
    wanted = Wanted(frozenset({"Ready"}), settings.keys.prefix, capacity=True, annotations=POOL_ANNOTATIONS)
    look = reader.look(LookRequest(wanted))
    nodes = tuple(reader.completed(look.in_order, wanted))
    pods = gaps.read(PODS, partial(reader.pods, placement=True), "nothing is known about the workloads")
    budgets = gaps.read(BUDGETS, reader.budgets, "the evictions that they refuse are not known")
    namespaces = gaps.read(
        NAMESPACES, reader.namespaces, "drain.rules that select namespaces by label are not applied"
    )
    found = gaps.read(VOLUMES, volumes.volumes, "where volumes can be mounted is not known")
    ledger = gaps.read(LEDGER, partial(read_of, look.ledger), "holds of all nodes and of pools are not known")
    return ClusterState(
        nodes=nodes,
        pods=pods or (),
        budgets=budgets or (),
        namespaces=namespaces or {},
        volumes=found or (),
        holds=ledger.holds if ledger is not None else (),
        unseen=tuple(gaps.unseen.values()),
    )


_Why = tuple[PeopleCode, str, str, datetime | None]


def kept_by_people(
    nodes: Iterable[Node], holds: Iterable[PersonHold], settings: Settings, kind: Kind, now: datetime
) -> tuple[KeptByPeople, ...]:
    """Return what keeps these nodes from a drain for an event of this kind; nodes with the same reason once.

    `holds` are those of the ledger, `now` is aware. Raises nothing for any text of an annotation.
    """
    fleet = tuple(holds)
    grouped: dict[_Why, list[str]] = {}
    for node in nodes:
        said = instructions_of(node, settings.keys.prefix, now, fleet)
        for why in _reasons(node, said, settings, kind):
            grouped.setdefault(why, []).append(node.name)
    order = list(PeopleCode)
    return tuple(
        KeptByPeople(code, because, remedy, until, tuple(sorted(names)))
        for (code, because, remedy, until), names in sorted(
            grouped.items(), key=lambda one: (order.index(one[0][0]), -len(one[1]), one[1])
        )
    )


def _reasons(node: Node, said: Instructions, settings: Settings, kind: Kind) -> Iterator[_Why]:
    if said.hold is not None:
        word = said.hold.word
        yield PeopleCode.HOLD, f"held {word}", f"{resume_command(word.scope, 'NODE')} ends it.", word.until
    if said.deferral is not None:
        word = said.deferral.word
        remedy = f"{resume_command(word.scope, 'NODE')} ends it, and the deadline of an event does."
        yield PeopleCode.DEFERRAL, f"deferred {word}", remedy, word.until
    policy = settings.policies(node.labels)[kind, ""]
    approval = said.permission("approved")
    events = approval.events if approval is not None else ()
    approved = any(event.kind.severity >= kind.severity for event in events)
    if policy is None or not policy.says("approval") or approved:
        return
    because = f"a drain for a {kind} waits for a person to approve it"
    if policy.says("approval_missing"):
        because = f"{because}, until its deadline"
    yield PeopleCode.APPROVAL, because, "reconciler approve NODE approves it once it is announced.", None


_REMEDY = "Add nodes on which they can run, or spread the pods over more nodes."


def stuck(found: Iterable[PodFinding], budgets: BudgetIndex) -> Iterator[PodFinding]:
    """Yield the pods of one node that can't all be evicted under their budget.

    `found` are the findings about the node. Each evicted pod that can run nowhere else uses one of the
    disruptions that its budget allows, until the node is back.
    """
    by_budget: dict[tuple[str, int], list[PodFinding]] = {}
    for one in found:
        if one.code not in (FindingCode.NO_ROOM, FindingCode.VOLUME_NODE) or asks_none(one.pod):
            continue
        covering = budgets.covering(one.pod)
        if len(covering) == 1 and covering[0].allowed > 0 and asks(covering[0], one.pod):
            by_budget.setdefault((covering[0].key, covering[0].allowed), []).append(one)
    for (key, allowed), down in by_budget.items():
        if len(down) <= allowed:
            continue
        because = (
            f"{count_of(len(down), 'pod')} of one node under PodDisruptionBudget {key} can run nowhere "
            f"else, and it"
            f" allows only {allowed} to be down, so a drain waits for the rest"
        )
        for one in down:
            yield PodFinding(one.pod, FindingCode.BUDGET_NO_ROOM, Severity.BLOCKS, because, _REMEDY, (key,))


KIND = Kind.REBOOT
"""The kind of event that is assumed: the most frequent one that ends with the same node."""

_LONGEST = 200
_EVENTS = (KnownEvent(KIND, None, (), ()),)


class Judgement(Struct, frozen=True):
    """What was found on the nodes.

    `pods` counts their pods, `going` are those that drains would evict. `people` is what keeps drains from
    their begin. `unsure` says that it is not known for some node whether its drain would end.
    """

    nodes: tuple[str, ...]
    pods: int
    found: tuple[PodFinding, ...]
    going: tuple[Pod, ...]
    notes: tuple[str, ...] = ()
    unsure: bool = False
    people: tuple[KeptByPeople, ...] = ()


class _Circumstances(Struct, frozen=True):
    """What is known of the whole cluster."""

    seen: ClusterState
    settings: Settings
    now: datetime
    budgets: BudgetIndex
    mounts: Mounts
    shelter: Shelter
    siblings: Counter[Workload]


def judge_nodes(
    seen: ClusterState, settings: Settings, now: datetime, selector: LabelSelector = EVERYTHING
) -> Judgement:
    """Return what is found on the managed nodes that the selector matches. `now` is aware."""
    here: dict[str, list[Pod]] = {}
    for pod in seen.pods:
        here.setdefault(pod.node, []).append(pod)
    live = [pod for pod in seen.pods if pod.node and not pod.finished]
    mounts = Mounts(seen.volumes, seen.nodes)
    around = _Circumstances(
        seen,
        settings,
        now,
        BudgetIndex(with_unplaced(seen.budgets, seen.pods)),
        mounts,
        Shelter(seen.nodes, seen.pods, mounts),
        Counter(map(workload_of, live)),
    )
    selected = [node for node in seen.nodes if selector.matches(node.labels)]
    chosen = [node for node in selected if settings.manages(node.labels)]
    found: list[PodFinding] = []
    going: list[Pod] = []
    notes: list[str] = []
    # Without the pods or the budgets, and without a node, nobody knows.
    unsure = not chosen or bool({one.what for one in seen.unseen} & {PODS, BUDGETS})
    for node in chosen:
        work = partial(_judge_node, node, here.get(node.name, []), around)
        of_node, problems = guarded(f"node {node.name} can't be judged", work, ([], []))
        found += of_node[0]
        going += of_node[1]
        notes += problems
        unsure |= bool(problems)
    if len(selected) > len(chosen):
        notes.append(f"nodes that the settings do not manage are left out: {len(selected) - len(chosen)}")
    unreadable = around.shelter.unreadable
    if unreadable:
        first = limits.text(unreadable[0], _LONGEST)
        notes.append(
            f"left out of the search for room: {len(unreadable)} quantities that can't be read, such as "
            f"{first}"
        )
    if around.shelter.exhausted:
        notes.append(
            "room on other nodes was not checked for all pods, because there are too many different ones"
        )
    names = tuple(node.name for node in chosen)
    pods = sum(len(here.get(name, ())) for name in names)
    people = kept_by_people(chosen, seen.holds, settings, KIND, now)
    return Judgement(names, pods, tuple(found), tuple(going), tuple(notes), unsure, people)


def _judge_node(node: Node, pods: list[Pod], around: _Circumstances) -> tuple[list[PodFinding], list[Pod]]:
    """Return what is found about the pods of a node, and the pods that a drain would evict."""
    settings, namespaces = around.settings, around.seen.namespaces
    snapshot = Snapshot((), for_settings=ReadForSettings(namespaces))
    order = drain_order(node, _EVENTS, around.now, settings, snapshot)
    policies = settings.policies(node.labels)
    policy = Policy(
        order=replace(order, options=replace(order.options, refusals=REFUSALS)),
        evict_empty_dir=evicting_setting(_EVENTS, policies, "empty_dir"),
        evict_unmanaged=evicting_setting(_EVENTS, policies, "unmanaged_pods"),
    )
    found: list[PodFinding] = []
    going: list[Pod] = []
    moving: list[Pod] = []
    for pod in pods:
        judged = judge(pod, policy.order.options, now=around.now, namespaces=namespaces)
        found += staying(judged, policy, around.now)
        if not judged.goes or pod.finished:
            continue
        going.append(pod)
        covering = around.budgets.covering(pod)
        found += leaving(pod, covering, policy, around.siblings[workload_of(pod)])
        mounted = around.mounts.found(pod)
        if mounted is not None:
            found.append(mounted)
        # Nothing creates a pod of no controller again, and a volume can say more than the search for room.
        if pod.owner is not None and (mounted is None or mounted.code is not FindingCode.VOLUME_NODE):
            moving.append(pod)
    found += around.shelter.homeless(node.name, moving)
    found += stuck(found, around.budgets)
    return found, going


def in_turn(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods in turns: each workload has one before any has two, so a limit cuts none off."""
    seen: dict[Workload, int] = {}
    turns: list[tuple[int, Pod]] = []
    for pod in sorted(pods, key=lambda pod: (pod.key, pod.uid)):
        workload = workload_of(pod)
        turn = seen[workload] = seen.get(workload, 0) + 1
        turns.append((turn, pod))
    return tuple(pod for _, pod in sorted(turns, key=lambda one: one[0]))


_Key = tuple[FindingCode, tuple[str, ...]]


def summed_up(
    seen: ClusterState,
    judged: Judgement,
    settings: Settings,
    now: datetime,
    answers: WebhookAnswers | None = None,
) -> Readiness:
    """Return the whole answer. `answers` are those of webhooks, None if they were not asked."""
    asked = answers or WebhookAnswers()
    findings = (*judged.found, *_refused(judged, asked.refusals))
    grouped: dict[Workload, dict[_Key, list[PodFinding]]] = {}
    for finding in findings:
        groups = grouped.setdefault(workload_of(finding.pod), {})
        groups.setdefault((finding.code, finding.about), []).append(finding)
    workloads = []
    for workload, groups in grouped.items():
        of_workload = [
            Finding(
                same[0].code,
                same[0].severity,
                same[0].because,
                same[0].remedy,
                pods=tuple(sorted({finding.pod.name for finding in same})),
                nodes=tuple(sorted({finding.pod.node for finding in same})),
                about=same[0].about,
            )
            for same in groups.values()
        ]
        of_workload.sort(key=lambda finding: finding.severity.rank)
        workloads.append(WorkloadFindings(workload, tuple(of_workload)))
    workloads.sort(key=_place)
    blocking = (finding for finding in findings if finding.severity is Severity.BLOCKS)
    notes = list(judged.notes)
    if answers is not None:
        left = f", and not about {answers.left} more" if answers.left else ""
        notes.append(f"webhooks were asked about evictions of pods: {answers.asked}{left}")
    if asked.silent:
        notes.append(f"no answer to {asked.silent} dry-run evictions: it is not known what webhooks refuse")
    unseen = seen.unseen
    if asked.needs:
        follows = "whether they refuse evictions is not known"
        unseen = (*unseen, Unseen(WEBHOOKS, asked.needs, follows, asked.because))
    return Readiness(
        now=now,
        kind=KIND.value,
        nodes=len(judged.nodes),
        pods=judged.pods,
        blocked=tuple(sorted({finding.pod.node for finding in blocking})),
        workloads=tuple(workloads),
        notes=tuple(notes),
        unseen=unseen,
        unsure=judged.unsure or bool(asked.needs or asked.silent),
        time_zone=settings.time_zone.key,
        settings=settings.version,
        people=judged.people,
    )


def _place(one: WorkloadFindings) -> tuple[int, int, Workload]:
    worst = (finding for finding in one.findings if finding.severity is one.severity)
    return one.severity.rank, -max(len(finding.pods) for finding in worst), one.workload


def _refused(judged: Judgement, refusals: Iterable[WebhookRefusal]) -> Iterator[PodFinding]:
    pods = {(pod.namespace, pod.name): pod for pod in judged.going}
    for refusal in refusals:
        pod = pods.get((refusal.namespace, refusal.pod))
        if pod is None:
            continue
        webhook, message = refusal.webhook, refusal.message
        if refusal.reached:
            because = f"{webhook} refuses its eviction: {message}"
            remedy = "Ask the owner of the webhook or policy why, and exclude evictions by drains from it."
        else:
            because = f"{webhook} can't be called, so the API server refuses its eviction: {message}"
            remedy = "Repair the webhook, or set its failurePolicy to Ignore."
        yield PodFinding(pod, FindingCode.WEBHOOK, Severity.BLOCKS, because, remedy, (webhook,))


def readiness_of(
    reader: ClusterReader,
    volumes: VolumeReader,
    settings: Settings,
    clock: Callable[[], datetime],
    selector: LabelSelector = EVERYTHING,
    ask: Callable[[Sequence[Pod]], WebhookAnswers] | None = None,
) -> Readiness:
    """Read the cluster, and return what is found on the nodes that the selector matches.

    `clock` is asked after that (aware). `ask` asks webhooks about the pods that drains would evict. Raises
    ClusterError as `read` does.
    """
    seen = read(reader, volumes, settings)
    now = clock()
    judged = judge_nodes(seen, settings, now, selector)
    return summed_up(seen, judged, settings, now, ask(in_turn(judged.going)) if ask is not None else None)
