"""Machines that are objects of the cluster, from recorded objects: what is read, and problems of one only."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.http.retrying import TRIES
from reconciler.model.errors import Conflict, Rejected
from reconciler.model.machine import (
    CLUSTER_API,
    KARPENTER,
    OPENSHIFT,
    Machine,
    MachineRef,
    Pool,
    Remove,
    ScaleUp,
)
from reconciler.model.values import replace
from tests.features.machines.all_providers import all_machines
from tests.support.patches import patched
from tests.support.stub import Answer, Asked, StubMaker, json_answer, status

Object = dict[str, Any]

SETS = (CLUSTER_API, OPENSHIFT)
ALL = (KARPENTER, *SETS)
GROUPS = {
    KARPENTER: ("karpenter.sh", "v1"),
    CLUSTER_API: ("cluster.x-k8s.io", "v1beta2"),
    OPENSHIFT: ("machine.openshift.io", "v1beta1"),
}
SET_OF = {CLUSTER_API: "inner", OPENSHIFT: "workers"}
OTHER = "00000000-0000-0000-0000-000000000000"


def ref(provider: str, node: str = "a") -> MachineRef:
    vm = f"test:///{node}"
    if provider == KARPENTER:
        return MachineRef(node, f"uid-of-{node}", provider, node, provider_id=vm)
    return MachineRef(node, f"uid-of-{node}", provider, f"m-{node}", "machines", provider_id=vm)


def meta(name: str, *owners: Object) -> Object:
    return {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "7", "ownerReferences": list(owners)}


def owner(provider: str, kind: str, name: str, uid: str = "") -> Object:
    found = {"apiVersion": "/".join(GROUPS[provider]), "kind": kind, "name": name}
    return {**found, "uid": uid or f"uid-of-{name}", "controller": True}


def pool_object(name: str, *owners: Object) -> Object:
    numbers = {"replicas": 3, "readyReplicas": 3}
    return {"metadata": meta(name, *owners), "spec": {"replicas": 3}, "status": numbers}


def objects_of(provider: str, node: str) -> dict[str, Object]:
    """A node's machine and its pool, as kind and name: of Cluster API a deployment with one set."""
    if provider == KARPENTER:
        claim = meta(f"m-{node}") | {"labels": {"karpenter.sh/nodepool": "workers"}}
        of = {"nodeName": node, "providerID": f"test:///{node}"}
        return {f"nodeclaims/m-{node}": {"metadata": claim, "status": of}}
    inner = SET_OF[provider]
    made = {
        f"machines/m-{node}": {
            "metadata": meta(f"m-{node}", owner(provider, "MachineSet", inner)),
            "spec": {"providerID": f"test:///{node}"},
            "status": {"nodeRef": {"name": node}},
        },
        f"machinesets/{inner}": pool_object(inner),
    }
    if provider == CLUSTER_API:
        made["machinesets/inner"] = pool_object("inner", owner(provider, "MachineDeployment", "workers"))
        made["machinedeployments/workers"] = pool_object("workers")
    return made


class Recorded:
    """An API server with these objects; `statuses` are answers to paths that end so."""

    def __init__(self, stub: StubMaker) -> None:
        self.objects = {provider: objects_of(provider, "a") for provider in ALL}
        self.statuses: dict[str, Answer] = {}
        self.server, self.connection = stub(self.answer)
        self.machines = all_machines(self.connection, guard=lambda: None)

    def patch(self, provider: str, name: str, body: Object) -> None:
        self.objects[provider][name] = patched(self.objects[provider][name], body)

    def of(self, provider: str) -> Machine:
        (found,) = self.machines.machines([ref(provider)])
        return found

    def problem(self, provider: str, **said: Any) -> str:
        """Why the machine can't be used, with what else the node says of itself."""
        asked = replace(ref(provider), **said)
        (found,) = self.machines.machines([asked])
        assert found == Machine(asked, problem=found.problem)
        assert "\n" not in found.problem
        assert len(found.problem) < 500
        return found.problem

    def answer(self, asked: Asked) -> Answer:
        for end, given in self.statuses.items():
            if asked.path.endswith(end):
                return given
        for provider, (group, version) in GROUPS.items():
            if asked.path == f"/apis/{group}":
                return json_answer({"preferredVersion": {"version": version}})
            place = f"/apis/{group}/{version}/"
            if asked.path.startswith(place):
                what = asked.path.removeprefix(place).removeprefix("namespaces/machines/")
                if what == "nodeclaims":
                    return json_answer({"items": list(self.objects[provider].values())})
                if found := self.objects[provider].get(what):
                    return json_answer(found)
        return status(404, "NotFound", "not found")


@pytest.fixture
def recorded(stub: StubMaker) -> Recorded:
    return Recorded(stub)


# What is read.

POOLS = {
    KARPENTER: Pool("NodePool", "workers"),
    CLUSTER_API: Pool("MachineDeployment", "workers", "machines", 3, 3, "uid-of-workers", scales=True),
    OPENSHIFT: Pool("MachineSet", "workers", "machines", 3, 3, "uid-of-workers", scales=True),
}
DEPLOYMENT, SET, MACHINE = "machinedeployments/workers", "machinesets/inner", "machines/m-a"
TOPMOST = {CLUSTER_API: DEPLOYMENT, OPENSHIFT: "machinesets/workers"}
PAUSED = "cluster.x-k8s.io/paused"
CLAIM = "nodeclaims/m-a"
BUSY = "MachineDeployment workers is paused"
INNER: Object = {"kind": "MachineSet", "name": "inner", "revision": "uid-of-inner"}
FIXED = {"scales": False}
NONE: Object = {"pool": None}
CONTROL_PLANE: Object = {"pool": None, "control_plane": True}


def annotated(key: str) -> Object:
    return {"metadata": {"annotations": {key: ""}}}


def labelled(key: str, value: str = "") -> Object:
    return {"metadata": {"labels": {key: value}}}


def owners(*them: Object) -> Object:
    return {"metadata": {"ownerReferences": list(them)}}


@pytest.mark.parametrize("provider", ALL)
def test_a_machine_is_read_with_the_topmost_owner_that_keeps_a_number(
    recorded: Recorded, provider: str
) -> None:
    found = recorded.of(provider)

    assert found == Machine(ref(provider), name="m-a", uid="uid-of-m-a", pool=POOLS[provider])


SCALER = "cluster-api-autoscaler-node-group"
BY = "MachineSet workers is controlled by"
ROLLOUT = {"busy": "MachineDeployment workers is rolling out a change: 2 of 3 machines updated"}
OF_THE_POOL: list[tuple[str, str, Object, Object]] = [
    (CLUSTER_API, DEPLOYMENT, {"spec": None, "status": None}, {"wanted": 1, "ready": 0}),
    (CLUSTER_API, DEPLOYMENT, {"status": {"readyReplicas": 2}}, {"ready": 2}),
    (CLUSTER_API, DEPLOYMENT, annotated(f"cluster.x-k8s.io/{SCALER}-min-size"), FIXED),
    (CLUSTER_API, DEPLOYMENT, annotated(f"cluster.x-k8s.io/{SCALER}-max-size"), FIXED),
    (OPENSHIFT, "machinesets/workers", annotated(f"machine.openshift.io/{SCALER}-min-size"), FIXED),
    (OPENSHIFT, "machinesets/workers", annotated(f"machine.openshift.io/{SCALER}-max-size"), FIXED),
    (CLUSTER_API, DEPLOYMENT, labelled("topology.cluster.x-k8s.io/owned"), FIXED),
    (CLUSTER_API, SET, owners(), INNER),
    (CLUSTER_API, SET, owners(owner(KARPENTER, "Fleet", "x")), {**INNER, **FIXED}),
    *((CLUSTER_API, name, annotated(PAUSED), {"busy": BUSY}) for name in (MACHINE, SET, DEPLOYMENT)),
    (CLUSTER_API, DEPLOYMENT, {"status": {"updatedReplicas": 2}}, ROLLOUT),
    (CLUSTER_API, DEPLOYMENT, {"status": {"upToDateReplicas": 2}}, ROLLOUT),
    (OPENSHIFT, MACHINE, {"status": {"authoritativeAPI": "MachineAPI"}}, {}),
    *(
        (OPENSHIFT, MACHINE, {"status": {"authoritativeAPI": by}}, {"busy": f"{BY} {by}"})
        for by in ("ClusterAPI", "Migrating")
    ),
]


@pytest.mark.parametrize(("provider", "name", "patch", "pool"), OF_THE_POOL)
def test_what_an_object_says_of_the_pool(
    recorded: Recorded, provider: str, name: str, patch: Object, pool: Object
) -> None:
    recorded.patch(provider, name, patch)

    assert recorded.of(provider).pool == replace(POOLS[provider], **pool)


ROLE = "machine.openshift.io/cluster-api-machine-role"
GONE = {"metadata": {"deletionTimestamp": "2026-11-21T12:00:00Z"}}
OF_THE_MACHINE: list[tuple[str, str, Object, Object]] = [
    (KARPENTER, CLAIM, GONE, {"deleting": True}),
    (KARPENTER, CLAIM, {"metadata": {"labels": None}}, NONE),
    *((provider, MACHINE, GONE, {"deleting": True}) for provider in SETS),
    *((provider, MACHINE, owners(), NONE) for provider in SETS),
    (CLUSTER_API, MACHINE, owners(owner(CLUSTER_API, "KubeadmControlPlane", "x")), CONTROL_PLANE),
    (OPENSHIFT, MACHINE, owners(owner(OPENSHIFT, "ControlPlaneMachineSet", "x")), CONTROL_PLANE),
    (CLUSTER_API, MACHINE, labelled("cluster.x-k8s.io/control-plane"), CONTROL_PLANE),
    (OPENSHIFT, MACHINE, labelled(ROLE, "master"), CONTROL_PLANE),
    (OPENSHIFT, MACHINE, labelled(ROLE, "worker"), {}),
]


@pytest.mark.parametrize(("provider", "name", "patch", "machine"), OF_THE_MACHINE)
def test_what_an_object_says_of_the_machine(
    recorded: Recorded, provider: str, name: str, patch: Object, machine: Object
) -> None:
    before = recorded.of(provider)
    recorded.patch(provider, name, patch)

    assert recorded.of(provider) == replace(before, **machine)


def test_claims_are_listed_once_for_all_nodes_and_not_at_all_for_none(recorded: Recorded) -> None:
    def lists() -> int:
        return sum(asked.path.endswith("/nodeclaims") for asked in recorded.server.asked)

    recorded.of(CLUSTER_API)
    assert lists() == 0
    recorded.machines.machines([ref(KARPENTER, node) for node in "abc"])
    assert lists() == 1


# Machines that can't be used.

UNUSABLE: list[tuple[str, str, Object, str]] = [
    (KARPENTER, CLAIM, {"status": {"providerID": None}}, "NodeClaim m-a names no providerID yet"),
    (KARPENTER, CLAIM, {"status": {"nodeName": "b"}}, "no NodeClaims are of this node"),
    (KARPENTER, CLAIM, {"status": {"nodeName": ["a"]}}, "of this node, and 1 can't be read"),
    (CLUSTER_API, DEPLOYMENT, {"status": {"updatedReplicas": []}}, "machines/workers can't be read: "),
    (CLUSTER_API, MACHINE, owners(owner(CLUSTER_API, "MachinePool", "mp")), "belongs to MachinePool mp: "),
]
for _provider in SETS:
    _name = SET_OF[_provider]
    _rows: list[tuple[Object, str]] = [
        ({"status": {"nodeRef": {"name": "b"}}}, "m-a is of node b, not of this one"),
        ({"status": None}, "Machine machines/m-a is of no node, not of this one"),
        ({"status": {"nodeRef": {"uid": OTHER}}}, "m-a is of an earlier node a, not of this one"),
        ({"status": {"nodeRef": "a"}}, "Machine machines/m-a can't be read: "),
        ({"spec": None}, "Machine machines/m-a names no providerID yet"),
        (owners(owner(_provider, "MachineSet", _name, OTHER)), "is not the one that owns the machine"),
        (owners(owner(_provider, "MachineSet", "../machines/m-a")), "there can be no MachineSet machines/.."),
        (owners(owner(_provider, "MachineSet", "gone")), "there is no MachineSet machines/gone"),
    ]
    UNUSABLE += [(_provider, MACHINE, patch, words) for patch, words in _rows]
    _broken = {"status": {"readyReplicas": "many"}}
    UNUSABLE.append((_provider, TOPMOST[_provider], _broken, "machines/workers can't be read: "))


@pytest.mark.parametrize(("provider", "name", "patch", "words"), UNUSABLE)
def test_a_machine_that_can_t_be_identified_is_a_problem_of_its_node(
    recorded: Recorded, provider: str, name: str, patch: Object, words: str
) -> None:
    recorded.patch(provider, name, patch)

    assert words in recorded.problem(provider)
    if "providerID" in words:
        assert words in recorded.problem(provider, provider_id="")


def test_two_claims_of_one_node_are_reported_in_words(recorded: Recorded) -> None:
    claims = recorded.objects[KARPENTER]
    claims["nodeclaims/m-b"] = claims["nodeclaims/m-a"]

    assert recorded.problem(KARPENTER) == "2 NodeClaims are of this node"


@pytest.mark.parametrize("provider", ALL)
@pytest.mark.parametrize("says", ["test:///b", "", "test:///a/", "TEST:///a", "x" * 5000])
def test_a_machine_of_another_vm_than_the_node_s_is_not_its_own(
    recorded: Recorded, provider: str, says: str
) -> None:
    assert "is of test:///a" in recorded.problem(provider, provider_id=says)


@pytest.mark.parametrize("name", ["../../secrets/x", "a/b", "", "A", "a?x=y", "a%2Fb", "..", "é"])
def test_a_name_that_can_be_none_is_never_asked_for(recorded: Recorded, name: str) -> None:
    assert "there can be no Machine" in recorded.problem(CLUSTER_API, name=name)
    assert "there can be no Machine" in recorded.problem(CLUSTER_API, namespace=name)
    assert recorded.server.asked == []
    for provider in ALL:
        with pytest.raises(Rejected, match=r"is no name of a Kubernetes object|that can't exist"):
            recorded.machines.remove(Remove("a", Machine(ref(provider), name or "..", "u")))
    assert {asked.method for asked in recorded.server.asked} == {"GET"}


def test_a_missing_machine_is_reported_in_words(recorded: Recorded) -> None:
    assert recorded.problem(OPENSHIFT, name="m-b") == "there is no Machine machines/m-b"


@pytest.mark.parametrize("provider", ALL)
def test_one_broken_object_spoils_no_other(recorded: Recorded, provider: str) -> None:
    (broken, *_) = recorded.objects[provider]
    recorded.patch(provider, broken, {"status": {"nodeRef": "a", "nodeName": ["a"]}})
    recorded.objects[provider] = {**objects_of(provider, "b"), **recorded.objects[provider]}

    first, second = recorded.machines.machines([ref(provider), ref(provider, "b")])

    assert "can't be read" in first.problem
    assert second.problem == ""


def test_one_missing_kind_spoils_no_other(recorded: Recorded) -> None:
    recorded.statuses["/apis/karpenter.sh"] = status(404, message="no such path")

    found = recorded.machines.machines([ref(KARPENTER), ref(CLUSTER_API, "c"), ref(OPENSHIFT)])

    assert [one.ref.provider for one in found] == [KARPENTER, CLUSTER_API, OPENSHIFT]
    assert [bool(one.problem) for one in found] == [True, True, False]
    assert "this cluster has no such API" in found[0].problem


@pytest.mark.parametrize("provider", ALL)
def test_what_we_may_not_read_is_reported_in_words(recorded: Recorded, provider: str) -> None:
    recorded.statuses["/m-a"] = recorded.statuses["/nodeclaims"] = status(403, "Forbidden", "is forbidden")

    reported = recorded.problem(provider)

    assert reported.startswith("we have no right to read ")
    assert "403" in reported
    assert "is forbidden" in reported


def test_without_an_answer_the_rest_is_not_requested(recorded: Recorded) -> None:
    recorded.statuses[""] = status(503, message="away", Retry_After="60")

    first, *others = recorded.machines.machines([ref(CLUSTER_API), ref(OPENSHIFT), ref(KARPENTER)])

    assert {asked.path for asked in recorded.server.asked} == {"/apis/cluster.x-k8s.io"}
    assert "the API cluster.x-k8s.io can't be read" in first.problem
    assert all("can't be read" in other.problem and "away" in other.problem for other in others)


def test_an_api_without_a_preferred_version_is_reported(recorded: Recorded) -> None:
    recorded.statuses["/apis/cluster.x-k8s.io"] = json_answer({"kind": "APIGroup"})

    assert "no preferred version" in recorded.problem(CLUSTER_API)


def test_a_version_that_an_upgrade_brings_is_taken_up_by_the_same_process(recorded: Recorded) -> None:
    for version in ("v1beta1", "v1beta2"):
        recorded.statuses["/apis/cluster.x-k8s.io"] = json_answer({"preferredVersion": {"version": version}})
        recorded.machines.machines([ref(CLUSTER_API), ref(CLUSTER_API, "b")])

    versions = [asked.path.split("/")[3] for asked in recorded.server.asked if "/machines/m-" in asked.path]
    assert versions == ["v1beta1"] * 2 + ["v1beta2"] * 2


# What a real server can't be made to answer to a write.


def up(recorded: Recorded, wanted: int = 4) -> None:
    machine = Machine(ref(CLUSTER_API), "m-a", "uid-of-m-a", POOLS[CLUSTER_API])
    recorded.machines.scale_up(ScaleUp("a", machine, wanted))


def test_it_is_not_tried_for_ever(recorded: Recorded) -> None:
    recorded.statuses["/scale"] = status(409, "Conflict", "changed")

    with pytest.raises(Conflict):
        up(recorded)

    assert sum(asked.method == "PATCH" for asked in recorded.server.asked) == TRIES


def test_a_write_whose_answer_was_lost_is_not_done_twice(recorded: Recorded) -> None:
    """The server has it, we don't know: the second try names what is gone, and then it is read."""
    recorded.patch(CLUSTER_API, DEPLOYMENT, {"spec": {"replicas": 4}})
    recorded.statuses["/scale"] = Answer(b"{", cut=True)
    recorded.connection.sleep = lambda _: recorded.statuses.update({"/scale": status(409, "Conflict", "old")})

    up(recorded)

    methods = [asked.method for asked in recorded.server.asked if asked.path.count("/") > 2]
    assert methods == ["PATCH", "PATCH", "GET"]


def test_a_pool_that_has_as_many_is_not_even_asked(recorded: Recorded) -> None:
    up(recorded, 3)

    assert recorded.server.asked == []


def test_what_keeps_no_number_can_t_be_raised(recorded: Recorded) -> None:
    with pytest.raises(Rejected, match="nothing keeps a number"):
        recorded.machines.scale_up(ScaleUp("a", recorded.of(KARPENTER), 2))
