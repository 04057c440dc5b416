"""The agent's token can change only one annotation of its own node, even if RBAC allows more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.model import limits
from tests.real.manifests.applying import api_with, applied, policy_in_force, token, token_on
from tests.support.controlplane.api import Api, ApiError, Object
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.server import ControlPlane

POOL = Pool("np")
OWN, OTHER = POOL.node_name(1), POOL.node_name(10)
KEY = "node-maintenance.dev/imds"
ACKNOWLEDGE = "node-maintenance.dev/acknowledge"
PUBLISH = {"metadata": {"annotations": {KEY: "text"}}}


@pytest.fixture(scope="module")
def guarded(controlplane: ControlPlane) -> Iterator[ControlPlane]:
    """Two nodes and the policy in force; RBAC is wider than shipped, so that only the policy can refuse."""
    controlplane.start_apiserver()
    controlplane.clean()
    for instance in (1, 10):
        node = POOL.node(instance, labels={"kept": "yes"}, annotations={"kept": "yes"})
        node["metadata"]["finalizers"] = ["example.com/kept"]
        controlplane.api.create("nodes", node)
    with applied(controlplane, "agent"):
        everything = {"apiGroups": ["*"], "resources": ["nodes", "nodes/status"], "verbs": ["*"]}
        controlplane.api.patch("clusterroles", "node-maintenance-agent", {"rules": [everything]})
        policy_in_force(controlplane, OWN)
        yield controlplane
    controlplane.clean()


@pytest.fixture
def agent(guarded: ControlPlane, tmp_path: Path) -> Iterator[Api]:
    """The API server as the agent on OWN sees it."""
    with api_with(guarded, token_on(guarded, OWN), tmp_path) as api:
        yield api


def refused(error: pytest.ExceptionInfo[ApiError]) -> bool:
    """Whether it was the policy that refused."""
    return "ValidatingAdmissionPolicy 'node-maintenance-agent'" in str(error.value)


def test_the_agent_may_publish_on_its_own_node_change_it_and_take_it_away(agent: Api) -> None:
    agent.patch("nodes", OWN, PUBLISH)
    agent.patch("nodes", OWN, {"metadata": {"annotations": {KEY: "another"}}})
    agent.patch("nodes", OWN, {"metadata": {"annotations": {KEY: None}}})

    assert KEY not in agent.get("nodes", OWN)["metadata"]["annotations"]


def test_another_node_is_refused(agent: Api) -> None:
    with pytest.raises(ApiError) as error:
        agent.patch("nodes", OTHER, PUBLISH)

    assert refused(error)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"metadata": {"annotations": {"another": "x"}}}, id="another annotation"),
        pytest.param({"metadata": {"annotations": {"kept": "no"}}}, id="another's value"),
        pytest.param({"metadata": {"annotations": {"kept": None}}}, id="another taken away"),
        pytest.param({"metadata": {"annotations": None}}, id="all taken away"),
        pytest.param({"metadata": {"annotations": {KEY: "y", "another": "x"}}}, id="another beside ours"),
        pytest.param({"metadata": {"annotations": {ACKNOWLEDGE: '["A"]'}}}, id="orders of its own"),
        pytest.param(
            {"metadata": {"annotations": {KEY: "y", ACKNOWLEDGE: '["A"]'}}},
            id="orders beside what it publishes",
        ),
        pytest.param({"metadata": {"labels": {"new": "x"}}}, id="a label"),
        pytest.param({"metadata": {"labels": {"kept": None}}}, id="a label taken away"),
        pytest.param({"metadata": {"finalizers": []}}, id="a finalizer taken away"),
        pytest.param({"metadata": {"finalizers": ["example.com/x"]}}, id="a finalizer"),
        pytest.param(
            {
                "metadata": {
                    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}]
                }
            },
            id="an owner",
        ),
        pytest.param({"spec": {"unschedulable": True}}, id="a cordon"),
        pytest.param({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}, id="a taint"),
    ],
)
def test_anything_else_on_its_own_node_is_refused(agent: Api, patch: Object) -> None:
    with pytest.raises(ApiError) as error:
        agent.patch("nodes", OWN, patch)

    assert refused(error)


def test_the_orders_that_it_was_given_are_not_its_to_change(guarded: ControlPlane, agent: Api) -> None:
    guarded.api.patch("nodes", OWN, {"metadata": {"annotations": {ACKNOWLEDGE: '["given"]'}}})
    for text in ('["B"]', None):
        with pytest.raises(ApiError) as error:
            agent.patch("nodes", OWN, {"metadata": {"annotations": {ACKNOWLEDGE: text}}})
        assert refused(error)
    agent.patch("nodes", OWN, PUBLISH)

    assert agent.get("nodes", OWN)["metadata"]["annotations"][ACKNOWLEDGE] == '["given"]'


def test_more_than_is_read_is_refused(agent: Api) -> None:
    longest = "x" * limits.ANNOTATION
    agent.patch("nodes", OWN, {"metadata": {"annotations": {KEY: longest}}})
    with pytest.raises(ApiError) as error:
        agent.patch("nodes", OWN, {"metadata": {"annotations": {KEY: f"{longest}x"}}})

    assert refused(error)
    assert agent.get("nodes", OWN)["metadata"]["annotations"][KEY] == longest


def test_the_status_is_refused(agent: Api) -> None:
    body: dict[str, Any] = {"status": {"conditions": []}}
    with pytest.raises(ApiError) as error:
        agent.patch("nodes", OWN, body, subresource="status")

    assert refused(error)


def test_deleting_and_creating_nodes_are_refused(agent: Api) -> None:
    with pytest.raises(ApiError) as deleting:
        agent.delete("nodes", OWN)
    with pytest.raises(ApiError) as creating:
        agent.create("nodes", POOL.node(2))

    assert refused(deleting)
    assert refused(creating)


def test_a_token_that_is_bound_to_no_pod_is_refused(guarded: ControlPlane, tmp_path: Path) -> None:
    with api_with(guarded, token(guarded), tmp_path) as api, pytest.raises(ApiError) as error:
        api.patch("nodes", OWN, PUBLISH)

    assert refused(error)


def test_everybody_else_is_left_alone(guarded: ControlPlane) -> None:
    guarded.api.patch("nodes", OTHER, {"metadata": {"labels": {"admin": "may"}}})
