"""Law 18 for what tenants share: slots, tiers, places of requests, and the work of matching budgets.

Nobody else's pods wait longer than a bounded time, whatever a tenant takes, and however it is combined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.drain.drainer import Limits
from reconciler.drain.drainer.messages import BudgetNews
from reconciler.drain.drainer.node_drain import AWAITED
from reconciler.model.drains import DrainOptions, Escalation, PodWaits, WaitLimit
from reconciler.model.errors import ReconcilerError, Unreachable
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.selector import EVERYTHING, LabelSelector, Requirement
from reconciler.model.values import replace
from reconciler.simulation.workloads import BudgetSpec, Workload
from tests.drain.drainer.driving import START, CountedSelector, Drive, Scene
from tests.laws.hits import Hits
from tests.support.builders import PREFIX
from tests.support.searching import examples

EVIL, RICH, SYSTEM = "evil", "rich", "kube-system"
THEIRS, SHARED, OTHER = ("e0", "e1", "e2"), "s", "r"
OTHERS = 10
"""Pods of others, on the nodes that are drained."""

LIMITS = Limits(parallel=16, per_node=8)
DEADLINE = START + timedelta(minutes=17)
FOR_EVER = timedelta(days=100_000)
HANGS = timedelta(seconds=10)
LATE = timedelta(seconds=30) + LIMITS.overdue + LIMITS.slot_kept
"""How long a pod with the default grace period that does not leave may keep a slot."""

TURN = HANGS + AWAITED + LATE
"""How long pods that do not leave may keep the next tier waiting."""

OPTIONS = DrainOptions(waits=PodWaits(WaitLimit(START, timedelta(hours=1), DEADLINE)))


@dataclass
class Play:
    """One cluster with its drains, and what a tenant does there."""

    scene: Scene
    drive: Drive

    def run(self, name: str, node: str, count: int, **shape: object) -> None:
        """Run pods of the tenant on a node."""
        workload = replace(Workload(EVIL, name, replicas=count, pools=("spare",)), **shape)  # type: ignore[arg-type]  # fields of a Workload
        self.adopt(workload, node)

    def adopt(self, workload: Workload, node: str) -> None:
        """Run the pods of a workload on a node. They are ready."""
        first = sum(map(ord, workload.key + node)) * 1000
        made = (workload.pod(first + number, number) for number in range(workload.replicas))
        self.scene.cluster.adopt(
            workload, *(replace(pod, node=node, phase="Running", ready=True) for pod in made)
        )

    def cover(self, name: str) -> None:
        """Let a budget of the tenant forbid each eviction of these pods."""
        spec = BudgetSpec(EVIL, name, LabelSelector.of({"app": name.partition(".")[0]}), max_unavailable=0)
        self.scene.cluster.add_budget(spec)


def _long_grace(play: Play, node: str) -> None:
    play.run(f"grace-{node}", node, 2, grace=100_000_000, stops_after=FOR_EVER)


def _comes_back(play: Play, node: str) -> None:
    play.run(f"agent-{node}", node, 2, pools=(f"of-{node}",), tolerates_cordon=True)


def _is_bound(play: Play, node: str) -> None:
    play.run(f"bound-{node}", node, 1, node_name=node)


def _never_allowed(play: Play, node: str) -> None:
    play.run(f"never-{node}", node, 2)
    play.cover(f"never-{node}")


def _two_budgets(play: Play, node: str) -> None:
    play.run(f"two-{node}", node, 2)
    for budget in (f"two-{node}.a", f"two-{node}.b"):
        play.cover(budget)


def _stays(play: Play, node: str) -> None:
    play.run(f"stuck-{node}", node, 1)
    pods = play.scene.cluster.pods.values()
    play.scene.cluster.finalizers.update(pod.uid for pod in pods if pod.labels["app"] == f"stuck-{node}")


def _asks_to_wait(play: Play, node: str) -> None:
    play.run(f"wait-{node}", node, 1, labels={f"{PREFIX}/drain": "wait-completed"})


def _hangs(play: Play, node: str) -> None:
    play.run(f"many-{node}", node, 10)
    play.drive.hang(EVIL, HANGS.total_seconds())

    def refuse(verb: str, pod: Pod | None) -> ReconcilerError | None:
        evil = verb == "evict" and pod is not None and pod.namespace == EVIL
        return Unreachable('failed calling webhook "evil": context deadline exceeded') if evil else None

    play.scene.trouble = refuse


def _changes_budgets(play: Play, node: str) -> None:
    _never_allowed(play, node)
    for number in range(60):
        app = Requirement("app", "In", (f"never-{node}", str(number)))
        budget = PodDisruptionBudget(EVIL, f"{node}-{number % 20}", LabelSelector((app,)), allowed=1)
        play.drive.at(0.5 + number / 6, lambda budget=budget: play.drive.hear(BudgetNews(budget, 0)))  # type: ignore[misc]  # bound now


def _keeps_coming(play: Play, node: str) -> None:
    """Create a pod each second, each with another owner: its pods end at once, or not in hours."""

    def create(number: int) -> None:
        work = Workload(
            EVIL, f"try-{node}-{number}", "Job", grace=(30, 7200)[number % 2], stops_after=FOR_EVER
        )
        made = replace(
            work.pod(10**6 + number), uid=f"{node}-{number}", node=node, phase="Running", ready=True
        )
        play.scene.cluster.add_pod(replace(made, created=play.drive.now))

    for number in range(900):
        play.drive.at(0.5 + number, lambda number=number: create(number))  # type: ignore[misc]  # bound now


Way = Callable[[Play, str], None]
KEEP_COMING = "slot and tier: new pods that keep coming"
WAYS: dict[str, Way] = {
    "slot: a long grace period": _long_grace,
    "slot: a pod that comes back": _comes_back,
    "slot: a pod that its template binds": _is_bound,
    KEEP_COMING: _keeps_coming,
    "tier: a budget that never allows": _never_allowed,
    "tier: two budgets": _two_budgets,
    "tier: a pod that asks to wait": _asks_to_wait,
    "slot and tier: a finalizer": _stays,
    "places: a webhook that hangs": _hangs,
    "processor: budgets that change": _changes_budgets,
}


def _world() -> Play:
    """Nodes of the tenant that are drained first, one that all share, and one of others."""
    scene = Scene()
    for node in (*THEIRS, SHARED, OTHER):
        scene.add_node(node, cordoned=True)
        made = replace(scene.cluster.nodes[node], labels={"agentpool": f"of-{node}"})
        scene.cluster.replace_node(made)
    play = Play(scene, Drive(scene, limits=LIMITS))
    for name, node in (("web", SHARED), ("api", OTHER)):
        play.adopt(Workload(RICH, name, replicas=4, pools=("spare",)), node)
        selector = CountedSelector((Requirement("app", "In", (name,)),))
        scene.cluster.add_budget(BudgetSpec(RICH, name, selector, max_unavailable=2))
    critical = Workload(SYSTEM, "dns", pools=("spare",), priority_class="system-cluster-critical")
    play.adopt(critical, SHARED)
    play.adopt(Workload(SYSTEM, "plain", pools=("spare",)), OTHER)
    scene.cluster.add_budget(BudgetSpec(SYSTEM, "plain", EVERYTHING, max_unavailable=2))
    return play


def _drain(play: Play, slots: int | None) -> tuple[dict[str, datetime], int]:
    """Drain all nodes; return when the pods of others went, and how often their budgets were matched."""
    for node in (*THEIRS, SHARED, OTHER):
        escalation = Escalation(deadline=DEADLINE)
        play.drive.start(node, slots=slots, options=OPTIONS, escalation=escalation)
    longest = int((_waits(slots) + TURN) / timedelta(seconds=1)) + 60
    for seconds in range(10, longest, 10):
        play.drive.run(seconds)
        if len(_evicted(play)) == OTHERS:
            break
    return _evicted(play), play.drive.counting.matches


def _waits(slots: int | None) -> timedelta:
    """Return how long the drains that began before may keep all slots."""
    before = len((*THEIRS, SHARED))
    return LATE * (0 if slots is None else -(-before // slots)) + timedelta(seconds=20)


def _evicted(play: Play) -> dict[str, datetime]:
    found: dict[str, datetime] = {}
    for one in play.scene.requests:
        if not one.pod.startswith(f"{EVIL}/"):
            found.setdefault(one.pod, one.at)
    return found


@cache
def _alone(slots: int | None) -> tuple[dict[str, datetime], int]:
    return _drain(_world(), slots)


TAKEN = Hits()


@TAKEN.at_least(8)
@settings(max_examples=examples(40), deadline=None)
@given(
    ways=st.lists(
        st.tuples(st.sampled_from(sorted(WAYS)), st.sampled_from((*THEIRS, SHARED))), min_size=1, max_size=5
    ),
    slots=st.sampled_from((None, 1, 1, 2)),
)
@example(ways=[(KEEP_COMING, node) for node in ("e0", "e1", SHARED)], slots=1)
def test_whatever_a_tenant_takes_others_go_within_a_bounded_time(
    ways: list[tuple[str, str]], slots: int | None
) -> None:
    alone, matches = _alone(slots)
    play = _world()
    for way, node in dict.fromkeys(ways):
        WAYS[way](play, node)
    attacked, matched = _drain(play, slots)

    assert len(alone) == OTHERS
    assert attacked.keys() == alone.keys()
    for pod, at in attacked.items():
        turn = TURN if pod.startswith(f"{SYSTEM}/dns") else timedelta()
        assert at - alone[pod] <= _waits(slots) + turn, pod
    assert matched <= matches
    TAKEN.count(slots is not None)
