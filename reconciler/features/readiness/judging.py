"""What keeps a node from a drain: pods, budgets, people, what is stuck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from msgspec import Struct

from reconciler.drain import judge
from reconciler.drain.refusal import BudgetIndex, asks, asks_none
from reconciler.drain.workloads import workload_of
from reconciler.features.readiness.pods import REFUSALS, Found, Policy, leaving, staying
from reconciler.features.readiness.reading import Seen
from reconciler.features.readiness.room import Mounts, Shelter
from reconciler.model import limits
from reconciler.model.event import Kind
from reconciler.model.instructions import Instructions, PersonHold, instructions_of, resume_command
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.problems import BUDGETS, PODS, guarded
from reconciler.model.readiness import FindingCode, KeptByPeople, PeopleCode, Severity, Workload
from reconciler.model.record import KnownEvent
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.model.snapshot import ReadForSettings, Snapshot
from reconciler.model.values import replace
from reconciler.profiles.orders import drain_order, evicting_setting
from reconciler.settings.policies import ApprovalMissing
from reconciler.settings.schema import Settings

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
    policy = settings.policy(kind, "", node.labels)
    if policy is None or not policy.approval or _is_approved(said, kind):
        return
    because = f"a drain for a {kind} waits for a person to approve it"
    if policy.approval_missing is ApprovalMissing.PROCEED:
        because = f"{because}, until its deadline"
    yield PeopleCode.APPROVAL, because, "reconciler approve NODE approves it once it is announced.", None


def _is_approved(said: Instructions, kind: Kind) -> bool:
    """Whether the node has an approval for an event that is at least as disruptive."""
    found = said.approval
    return found is not None and any(known.kind.severity >= kind.severity for known in found.events)


_REMEDY = "Add nodes on which they can run, or spread the pods over more nodes."


def stuck(found: Iterable[Found], budgets: BudgetIndex) -> Iterator[Found]:
    """Yield the pods of one node that can't all be evicted under their budget.

    `found` are the findings about the node. Each evicted pod that can run nowhere else uses one of the
    disruptions that its budget allows, until the node is back.
    """
    by_budget: dict[tuple[str, int], list[Found]] = {}
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
            f"{len(down)} pods of one node under PodDisruptionBudget {key} can run nowhere else, and it"
            f" allows only {allowed} to be down, so a drain waits for the rest"
        )
        for one in down:
            yield Found(one.pod, FindingCode.BUDGET_NO_ROOM, Severity.BLOCKS, because, _REMEDY, (key,))


KIND = Kind.REBOOT
"""The kind of event that is assumed: the most frequent one that ends with the same node."""

_LONGEST = 200
_EVENTS = (KnownEvent(KIND, None, (), ()),)


class Judged(Struct, frozen=True):
    """What was found on the nodes.

    `pods` counts their pods, `going` are those that drains would evict. `people` is what keeps drains from
    their begin. `unsure` says that it is not known
    for some node whether its drain would end.
    """

    nodes: tuple[str, ...]
    pods: int
    found: tuple[Found, ...]
    going: tuple[Pod, ...]
    notes: tuple[str, ...] = ()
    unsure: bool = False
    people: tuple[KeptByPeople, ...] = ()


class _Circumstances(Struct, frozen=True):
    """What is known of the whole cluster."""

    seen: Seen
    settings: Settings
    now: datetime
    budgets: BudgetIndex
    mounts: Mounts
    shelter: Shelter
    siblings: Counter[Workload]


def judge_nodes(
    seen: Seen, settings: Settings, now: datetime, selector: LabelSelector = EVERYTHING
) -> Judged:
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
        BudgetIndex(seen.budgets),
        mounts,
        Shelter(seen.nodes, seen.pods, mounts),
        Counter(map(workload_of, live)),
    )
    selected = [node for node in seen.nodes if selector.matches(node.labels)]
    chosen = [node for node in selected if settings.manages(node.labels)]
    found: list[Found] = []
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
    notes += _about_room(around.shelter)
    names = tuple(node.name for node in chosen)
    pods = sum(len(here.get(name, ())) for name in names)
    people = kept_by_people(chosen, seen.holds, settings, KIND, now)
    return Judged(names, pods, tuple(found), tuple(going), tuple(notes), unsure, people)


def _about_room(shelter: Shelter) -> Iterator[str]:
    if shelter.unreadable:
        count, first = len(shelter.unreadable), limits.text(shelter.unreadable[0], _LONGEST)
        yield f"left out of the search for room: {count} quantities that can't be read, such as {first}"
    if shelter.exhausted:
        yield "room on other nodes was not checked for all pods, because there are too many different ones"


def _judge_node(node: Node, pods: list[Pod], around: _Circumstances) -> tuple[list[Found], list[Pod]]:
    """Return what is found about the pods of a node, and the pods that a drain would evict."""
    policy = _policy(node, around)
    namespaces = around.seen.namespaces
    found: list[Found] = []
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


def _policy(node: Node, around: _Circumstances) -> Policy:
    settings = around.settings
    snapshot = Snapshot((), for_settings=ReadForSettings(around.seen.namespaces))
    order = drain_order(node, _EVENTS, around.now, settings, snapshot)
    return Policy(
        order=replace(order, options=replace(order.options, refusals=REFUSALS)),
        evict_empty_dir=evicting_setting(_EVENTS, settings, node.labels, "empty_dir"),
        evict_unmanaged=evicting_setting(_EVENTS, settings, node.labels, "unmanaged_pods"),
    )
