"""Law 18: a person who may create pods can block only the eviction of these pods, by a budget."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.moments import to_text
from reconciler.model.pod import DO_NOT_DISRUPT, SAFE_TO_EVICT, Owner, Placement, Pod, PodSpec, Toleration
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.model.values import replace
from reconciler.simulation.workloads import BudgetSpec, Workload
from reconciler.simulation.world import World
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST
from tests.support.searching import examples
from tests.support.worlds import carry_on, look, world_of

EVIL = "evil"
HUGE = (-(2**63), -1, 0, 30, 7200, 10**12, 2**63 - 1)
LENGTH = timedelta(minutes=50)
SOON = to_text(NOW + timedelta(minutes=20))
REQUESTS = (builders.DRAIN_NOW, json.dumps({"kind": "Reboot", "notBefore": SOON}))
POLICY = """
budget: {maxUnavailable: 100%}
drain:
  timeout: 15m
  podsMayWait: 30m
  restartSingletons: true
  escalation: {deleteBeforeDeadline: true, warnAfter: 5m, forceDeleteStuckAfter: 5m}
"""
ENDS = timedelta(minutes=35)
"""When the drain of a node has ended at the latest: podsMayWait, and a little for the passes."""

_words = st.sampled_from(
    ("skip", "wait-completed", "WAIT-COMPLETED", "on-completion", "never", "x" * 250_000)
)
_keys = st.sampled_from(
    (
        f"{PREFIX}/drain",
        f"{PREFIX}/restart",
        f"{PREFIX}/wait-completed",
        f"{PREFIX}/pre-drain.leader",
        "cluster.x-k8s.io/drain",
        DO_NOT_DISRUPT,
        SAFE_TO_EVICT,
        "app",
        "any",
    )
)
_marks = st.dictionaries(_keys, st.one_of(_words, st.just("true"), st.just("web")), max_size=3)
_owners = st.one_of(
    st.none(),
    st.builds(
        Owner,
        kind=st.sampled_from(("ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "Job", "Node")),
        name=st.sampled_from(("web", "../../rich/replicasets/web", "", "..", "a" * 10_000)),
        api_version=st.sampled_from(("apps/v1", "v1", "", "x/y/z")),
        uid=st.sampled_from(("", "uid", "rich/web#0")),
    ),
)
_untolerant = Placement(tolerations=(Toleration(operator="Exists"),))
_crowded = Placement(requests=({"cpu": "1", "memory": "10**30"},) * 50, topology=True)


@dataclass(frozen=True, slots=True)
class Attack:
    """What one tenant does in their namespace: pods on one node, budgets, finalizers."""

    pods: tuple[Pod, ...]
    budgets: int
    finalizers: bool

    def begin(self, world: World) -> None:
        """Create everything."""
        for pod in self.pods:
            world.cluster.add_pod(pod)
            if self.finalizers:
                world.cluster.finalizers.add(pod.uid)
        for number in range(self.budgets):
            world.cluster.add_budget(BudgetSpec(EVIL, f"no-{number}", EVERYTHING, max_unavailable=0))


@st.composite
def _pod(draw: st.DrawFn) -> Pod:
    number = draw(st.integers(0, 10**6))
    return Pod(
        namespace=EVIL,
        name=f"p-{number}",
        uid=f"evil-{number}",
        node="n0",
        labels=draw(_marks),
        annotations=draw(_marks),
        owner=draw(_owners),
        phase=draw(st.sampled_from(("Running", "Pending", "Unknown", ""))),
        ready=draw(st.booleans()),
        spec=PodSpec(
            priority=draw(st.sampled_from((-(2**31), 0, 2**31 - 1))),
            priority_class=draw(st.sampled_from(("", "system-node-critical", "\x1b[2J"))),
            grace=draw(st.sampled_from(HUGE)),
            empty_dir=draw(st.booleans()),
            claims=draw(st.sampled_from(((), ("../../x",), ("data",) * 40))),
        ),
        deleting_until=draw(st.sampled_from((None, NOW, datetime(9999, 12, 31, tzinfo=UTC)))),
        placement=draw(st.sampled_from((None, _untolerant, _crowded))),
    )


_pods = st.lists(_pod(), min_size=1, max_size=6, unique_by=lambda pod: pod.uid).map(tuple)
_attacks = st.builds(Attack, pods=_pods, budgets=st.integers(0, 2), finalizers=st.booleans())


def _world(request: str) -> World:
    """Three nodes that are drained, each with pods of a tenant, and one where their new pods start."""
    nodes = [builders.node(f"n{number}", annotations={REQUEST: request}) for number in range(3)]
    world = world_of([*nodes, builders.node("spare", pool="spare")])
    cluster = world.cluster
    for app, replicas in (("web", 1), ("api", 4)):
        workload = Workload("rich", app, replicas=replicas, pools=("spare",))
        places = [nodes[1 + number % 2].name for number in range(replicas)]
        cluster.adopt(
            workload,
            *(
                Pod(
                    "rich",
                    f"{app}-{number}",
                    f"rich/{app}#{number}",
                    place,
                    labels={"app": app},
                    owner=Owner("ReplicaSet", app, "apps/v1", f"rs-{app}"),
                    phase="Running",
                    ready=True,
                )
                for number, place in enumerate(places)
            ),
        )
        cluster.add_budget(BudgetSpec("rich", app, LabelSelector.of({"app": app}), min_available=1))
    return world


def _play(world: World) -> dict[str, datetime]:
    """Run a pass every other minute; return when the drain of each node had ended."""
    policy = builders.settings(POLICY)
    while world.now < NOW + LENGTH:
        look(world, policy)
        carry_on(world)
        world.advance(timedelta(minutes=2))
    return {one.node: one.at for one in world.cluster.events if one.notice.reason == "MaintenanceDrained"}


def _outside(world: World) -> list[object]:
    """Return everything that was written or asked for beside the node and the pods of the attack."""
    found: list[object] = [
        one for one in world.api.pod_requests if one.node != "n0" and not one.pod.startswith(f"{EVIL}/")
    ]
    for call in world.api.done:
        if call.node == "n0":
            # The patches of the node itself; its drain may take longer.
            assert call.what in ("patch_node", "notify") or call.subject.startswith(f"{EVIL}/"), call
            continue
        content = call.content
        if isinstance(content, Pod):
            content = replace(content, resource_version="")
        if call.what != "write_ledger":
            found.append((call.what, call.node, call.subject, content))
    return found


@cache
def _undisturbed(request: str) -> tuple[dict[str, datetime], list[object]]:
    """Play the world without an attack: it is the same one for every attack."""
    world = _world(request)
    return _play(world), _outside(world)


ATTACKED = Hits()


@ATTACKED.at_least(40)
@settings(max_examples=examples(40), deadline=None)
@given(_attacks, st.sampled_from(REQUESTS))
def test_other_tenants_and_other_nodes_see_nothing_of_a_tenants_pods(attack: Attack, request: str) -> None:
    before, elsewhere = _undisturbed(request)
    attacked = _world(request)
    attack.begin(attacked)
    after = _play(attacked)

    assert before.keys() == {"n0", "n1", "n2"}
    assert [after.get(name) for name in ("n1", "n2")] == [before[name] for name in ("n1", "n2")]
    assert _outside(attacked) == elsewhere
    assert not [one for one in attacked.api.done if one.what == "restart" and one.node == "n0"]
    ATTACKED.count()


HELD = Hits()


@HELD.at_least(10)
@settings(max_examples=examples(30), deadline=None)
@given(_pods, st.sampled_from(REQUESTS))
def test_only_a_budget_or_a_pod_that_does_not_stop_holds_the_node(
    pods: tuple[Pod, ...], request: str
) -> None:
    world = _world(request)
    Attack(tuple(replace(pod, deleting_until=None) for pod in pods), 0, finalizers=False).begin(world)

    assert _play(world)["n0"] <= NOW + ENDS
    HELD.count(sum("wait-completed" in {**pod.labels, **pod.annotations}.values() for pod in pods))
