"""Two nodes with one providerID: neither is replaced, no pool grows, and each hold names the other."""

from __future__ import annotations

import pytest

from reconciler.model.machine import AKS, OPENSHIFT
from reconciler.model.node import Node
from reconciler.model.values import replace
from reconciler.passes.node_facts import twins_of
from tests.features.machines.test_replacing import SURGES, Fleet
from tests.support import builders
from tests.support.cases import PROVIDER_ID


def node(name: str, provider_id: str) -> Node:
    return replace(builders.node(name), provider_id=provider_id)


@pytest.mark.parametrize(
    "other",
    [PROVIDER_ID, PROVIDER_ID.upper(), PROVIDER_ID.replace("azure:///", "azure:/")],
    ids=["the same", "in capitals", "with fewer slashes"],
)
def test_two_nodes_of_one_vm_are_twins_in_every_spelling(other: str) -> None:
    found = twins_of([node("b", other), node("a", PROVIDER_ID), node("c", PROVIDER_ID + "1")])

    assert found == {"a": "b", "b": "a"}


def test_of_three_each_names_another() -> None:
    found = twins_of([node(name, "test:///x") for name in "cab"])

    assert found == {"a": "b", "b": "a", "c": "a"}


def test_nodes_without_a_vm_are_no_twins() -> None:
    assert twins_of([node("a", ""), node("b", "")]) == {}


@pytest.mark.parametrize("provider", [OPENSHIFT, AKS])
def test_neither_of_two_is_replaced_and_no_pool_grows(provider: str) -> None:
    fleet = Fleet("a", "b", text=SURGES.replace("maxUnavailable: 1", "maxUnavailable: 2"), provider=provider)
    for name in "ab":
        claimed = replace(fleet.cluster.nodes[name], provider_id=PROVIDER_ID)
        fleet.cluster.replace_node(claimed)
    fleet.ask("a")
    fleet.ask("b")

    assert "node b has the same providerID" in fleet.reasons("a")["offerDue"]
    assert "node a has the same providerID" in fleet.reasons("b")["offerDue"]
    assert fleet.machines.asked == []
