"""A Deployment is restarted only for a pod that it owns: each forged reference, without a real server."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.kubernetes.eviction import Evictions
from reconciler.model.errors import NotFound, Rejected
from reconciler.model.pod import Owner, Pod, PodSpec
from reconciler.model.values import replace
from tests.support.stub import Answer, Asked, Stub, StubMaker, json_answer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = {"app": "web"}
POD = Pod("default", "web-1", "u", "n", LABELS, owner=Owner("ReplicaSet", "web-rs", "apps/v1", "uid-rs"))
SELECTOR = {"matchLabels": LABELS}
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web", "controller": True}
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
REPLICA_SET = {
    "metadata": {"name": "web-rs", "namespace": "default", "uid": "uid-rs", "ownerReferences": [OWNER]},
    "spec": {"selector": SELECTOR},
}
DEPLOYMENT = {
    "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "resourceVersion": "7"},
    "spec": {"replicas": 1, "selector": SELECTOR, "strategy": ROLLING},
}


@dataclass(slots=True)
class Server:
    """A server with one ReplicaSet and one Deployment, which a test may change."""

    replica_set: dict[str, Any]
    deployment: dict[str, Any]
    stub: Stub
    evictions: Evictions

    @property
    def restarted(self) -> list[str]:
        """The paths of all patches."""
        return [asked.path for asked in self.stub.asked if asked.method == "PATCH"]


@pytest.fixture
def server(stub: StubMaker) -> Server:
    """A server, and evictions that speak to it."""
    made: list[Server] = []

    def answer(asked: Asked) -> Answer:
        path = asked.path.partition("?")[0]
        if path == "/apis/apps/v1/namespaces/default/replicasets/web-rs":
            return json_answer(made[0].replica_set)
        if path == "/apis/apps/v1/namespaces/default/deployments/web":
            return json_answer(made[0].deployment)
        status = {"kind": "Status", "message": "not found", "reason": "NotFound", "code": 404}
        return json_answer(status, status=404)

    served, connection = stub(answer)
    evictions = Evictions(connection, guard=lambda: None, prefix="node-maintenance.dev")
    made.append(Server(deepcopy(REPLICA_SET), deepcopy(DEPLOYMENT), served, evictions))
    return made[0]


def test_the_owner_of_the_pod_is_restarted(server: Server) -> None:
    assert server.evictions.restart(POD, NOW) == "web"
    assert server.restarted == ["/apis/apps/v1/namespaces/default/deployments/web"]


def _owner(**changes: str) -> Pod:
    assert POD.owner is not None
    return replace(POD, owner=replace(POD.owner, **changes))


FORGED_PODS = {
    "no owner": (replace(POD, owner=None), "no controller"),
    "a path": (_owner(name="../../rich/replicasets/x"), "an owner that can't exist"),
    "an escaped path": (_owner(name="..%2f..%2frich"), "an owner that can't exist"),
    "a long name": (_owner(name="a" * 10_000), "an owner that can't exist"),
    "another UID": (_owner(uid="other"), "it has another UID"),
    "no UID": (_owner(uid=""), "it has another UID"),
    "another group": (_owner(api_version="example.com/v1"), "not to a Deployment"),
    "another kind": (_owner(kind="Deployment"), "not to a Deployment"),
    "other labels": (replace(POD, labels={"app": "other"}), "does not select the pod"),
    "a claim that is a path": (
        replace(POD, spec=PodSpec(claims=("../x",))),
        "volume claim has a name that can't exist",
    ),
}


@pytest.mark.parametrize(("pod", "words"), FORGED_PODS.values(), ids=FORGED_PODS)
def test_a_forged_pod_restarts_nothing_and_the_reason_is_short(server: Server, pod: Pod, words: str) -> None:
    with pytest.raises(Rejected, match=words) as caught:
        server.evictions.restart(pod, NOW)
    assert not server.restarted
    assert len(str(caught.value)) < 1000


Change = Callable[[Server], object]
FORGED_OWNERS: dict[str, tuple[Change, str]] = {
    "the ReplicaSet has no owner": (
        lambda it: it.replica_set["metadata"].pop("ownerReferences"),
        "belongs to no Deployment",
    ),
    "its owner is not its controller": (
        lambda it: it.replica_set["metadata"]["ownerReferences"][0].pop("controller"),
        "belongs to no Deployment",
    ),
    "its owner has another group": (
        lambda it: it.replica_set["metadata"]["ownerReferences"][0].update(apiVersion="example.com/v1"),
        "belongs to no Deployment",
    ),
    "its owner has another UID": (
        lambda it: it.replica_set["metadata"]["ownerReferences"][0].update(uid="other"),
        "it has another UID",
    ),
    "its owner's name is a path": (
        lambda it: it.replica_set["metadata"]["ownerReferences"][0].update(name="../../rich/deployments/x"),
        "an owner that can't exist",
    ),
    "it selects nothing": (lambda it: it.replica_set["spec"].pop("selector"), "does not select the pod"),
    "the Deployment selects other pods": (
        lambda it: it.deployment["spec"].update(selector={"matchLabels": {"app": "other"}}),
        "does not select the pod",
    ),
    "the Deployment was created again": (
        lambda it: it.deployment["metadata"].update(uid="new"),
        "it has another UID",
    ),
    "the answer is another object": (
        lambda it: it.deployment["metadata"].update(namespace="rich"),
        "the answer is rich/web",
    ),
}


@pytest.mark.parametrize(("change", "words"), FORGED_OWNERS.values(), ids=FORGED_OWNERS)
def test_a_forged_owner_restarts_nothing(server: Server, change: Change, words: str) -> None:
    change(server)

    with pytest.raises(Rejected, match=words):
        server.evictions.restart(POD, NOW)
    assert not server.restarted


def test_an_owner_that_does_not_exist_restarts_nothing(server: Server) -> None:
    with pytest.raises(NotFound):
        server.evictions.restart(_owner(name="gone"), NOW)
    assert not server.restarted
