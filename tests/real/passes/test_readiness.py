"""`readiness` as a newcomer uses it: on a cluster with the usual obstacles, without any settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from tests.real.passes.processes import Done, Programs
from tests.real.passes.scene import Scene, cover, volume
from tests.real.passes.test_writing_nothing import MUTATING
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.webhooks import EVICTIONS, PLACE, Guard, rehearsed, webhook
from tests.support.controlplane.workloads import budget, pod


def found(done: Done) -> dict[str, list[tuple[str, str]]]:
    """The codes of the findings, with their severities, by the name of the workload."""
    return {
        each["name"] or "": [(one["code"], one["severity"]) for one in each["findings"]]
        for each in done.document["workloads"]
    }


def readiness(programs: Programs, *arguments: str) -> Done:
    return programs.run("readiness", *arguments)


def test_a_newcomer_sees_what_keeps_the_nodes_from_a_drain(scene: Scene, programs: Programs) -> None:
    nodes = [scene.node(number) for number in range(3)]
    scene.workload("web", replicas=3)
    scene.workload("ledger")
    cover(scene, "ledger")
    scene.workload("cart", replicas=2, volumes=[{"name": "tmp", "emptyDir": {}}])
    scene.workload("disk", replicas=2, volumes=volume(scene, "westeurope-1"))
    scene.api.create("pods", pod("debug", node_name=nodes[0]))
    began = datetime.now(UTC)

    text, strict = readiness(programs), readiness(programs, "--strict", "--output", "json")

    assert (text.code, strict.code) == (0, 1)
    assert "\n1 of 3 nodes would not drain; of the workloads, 1 blocks a drain, " in text.out
    assert found(strict) == {
        "ledger": [("budgetNever", "blocks"), ("singleton", "notice")],
        "": [("unmanaged", "outage")],
        "cart": [("emptyDir", "outage")],
        "disk": [("volumeNode", "outage")],
    }
    (ledger,) = (one for one in strict.document["workloads"] if one["name"] == "ledger")
    assert (ledger["namespace"], ledger["kind"]) == ("default", "Deployment")
    assert strict.document["blockedNodes"] == ledger["findings"][0]["nodeNames"]
    assert strict.document["unseen"] == []
    asked = scene.asked(since=began)
    assert {entry.resource for entry in asked} == {
        "nodes",
        "pods",
        "poddisruptionbudgets",
        "namespaces",
        "persistentvolumes",
        "configmaps",
        "leases",
    }
    # The ledger has the holds of all nodes, the lock says who makes passes.
    read = {entry.verb for entry in asked if entry.resource not in ("configmaps", "leases")}
    assert read == {"list"}
    assert {entry.verb for entry in asked} == {"list", "get"}


def test_webhooks_and_policies_that_refuse_are_found_and_nothing_is_evicted(
    scene: Scene, programs: Programs
) -> None:
    scene.node(0)
    scene.node(1)
    scene.workload("web", replicas=2)
    scene.workload("held", replicas=2)
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=1))
    before = uids(scene)
    began = datetime.now(UTC)

    assert found(readiness(programs, "--ask-webhooks", "--output", "json")) == {}
    with refusing(scene, "held"):
        refused = readiness(programs, "--ask-webhooks", "--strict", "--output", "json")
    # Port 9 of loopback: the connection is refused at once.
    with webhook(scene.api, Guard("guard", "https://127.0.0.1:9/", b""), "held", "failed calling webhook"):
        silent = readiness(programs, "--ask-webhooks", "--strict", "--output", "json")

    assert (refused.code, silent.code) == (1, 1)
    assert found(refused) == {"held": [("webhook", "blocks")]}
    (finding,) = refused.document["workloads"][0]["findings"]
    assert finding["about"] == ["ValidatingAdmissionPolicy calm"]
    assert "not during the sale" in finding["because"]
    assert found(silent) == {"held": [("webhook", "blocks")], "web": [("webhook", "blocks")]}
    assert "failurePolicy" in silent.document["workloads"][0]["findings"][0]["remedy"]
    assert uids(scene) == before
    budget_now = scene.api.get("poddisruptionbudgets", "web")["status"]
    assert budget_now["disruptionsAllowed"] == 1
    assert budget_now.get("disruptedPods", {}) == {}
    writes = {
        (entry.resource, entry.subresource) for entry in scene.asked(since=began) if entry.verb in MUTATING
    }
    assert writes == {("pods", "eviction")}


def uids(scene: Scene) -> set[str]:
    """The pods that are there and stay there."""
    pods = scene.api.list("pods")
    assert not any("deletionTimestamp" in one["metadata"] for one in pods)
    return {one["metadata"]["uid"] for one in pods}


@contextmanager
def refusing(scene: Scene, app: str) -> Iterator[None]:
    """A policy that refuses the evictions of an app."""
    says = {"expression": f"!object.metadata.name.startsWith('{app}-')", "message": "not during the sale"}
    constraints = {"resourceRules": [EVICTIONS]}
    policy = {
        "metadata": {"name": "calm"},
        "spec": {"failurePolicy": "Fail", "matchConstraints": constraints, "validations": [says]},
    }
    binding = {"metadata": {"name": "calm"}, "spec": {"policyName": "calm", "validationActions": ["Deny"]}}
    try:
        scene.api.request("POST", f"{PLACE}/validatingadmissionpolicies", policy)
        scene.api.request("POST", f"{PLACE}/validatingadmissionpolicybindings", binding)
        wait_for("the policy in force", lambda: "not during the sale" in rehearsed(scene.api, app))
        yield
    finally:
        for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            scene.api.request("DELETE", f"{PLACE}/{kind}/calm")
        wait_for("evictions without the policy", lambda: rehearsed(scene.api, app) == "")
