"""The name of the cluster: of the settings, else of the kubeconfig, else of the nodes, else an address."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.kubernetes.cluster_name import name_cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.credentials import Origin
from tests.support.stub import Answer, Asked, Stub, json_answer, status

AKS = "kubernetes.azure.com/cluster"


class Nodes:
    """The labels and annotations of each node; `silent`: they are not listed."""

    def __init__(self) -> None:
        self.metadata: list[dict[str, Any]] = []
        self.silent = False

    def __call__(self, asked: Asked) -> Answer:
        if self.silent:
            return status(403, "Forbidden", "no")
        assert asked.path == "/api/v1/nodes"
        return json_answer({"metadata": {}, "items": [{"metadata": each} for each in self.metadata]})


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


@pytest.fixture
def stub(nodes: Nodes) -> Iterator[Stub]:
    with closing(Stub(nodes)) as made:
        yield made


@pytest.fixture
def connection(stub: Stub, tmp_path: Path) -> Iterator[Connection]:
    """That of a Pod: no kubeconfig names the cluster."""
    made = Connection(str(stub.write_kubeconfig(tmp_path / "kubeconfig")))
    made.origin = Origin()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"labels": {AKS: "MC_rg-shop_shop-prod_westeurope"}}, "shop-prod"),
        ({"labels": {AKS: "mc_rg-shop_shop_westeurope"}}, "shop"),
        # Which part is the cluster is not known.
        ({"labels": {AKS: "MC_my_group_shop_westeurope"}}, "MC_my_group_shop_westeurope"),
        ({"labels": {AKS: "nodes-of-shop"}}, "nodes-of-shop"),
        ({"labels": {"alpha.eksctl.io/cluster-name": "shop"}}, "shop"),
        ({"annotations": {"cluster.x-k8s.io/cluster-name": "shop"}}, "shop"),
    ],
)
def test_in_a_pod_the_nodes_say_the_name(
    nodes: Nodes, connection: Connection, metadata: dict[str, Any], name: str
) -> None:
    nodes.metadata = [{"name": "virtual-kubelet"}, metadata]

    name_cluster(connection, "")

    assert connection.cluster == name


def test_the_settings_come_first_and_then_the_kubeconfig(nodes: Nodes, stub: Stub, tmp_path: Path) -> None:
    nodes.metadata = [{"labels": {AKS: "nodes-of-shop"}}]
    with closing(Connection(str(stub.write_kubeconfig(tmp_path / "kubeconfig")))) as connection:
        name_cluster(connection, "")
        of_kubeconfig = connection.cluster
        name_cluster(connection, "prod")

        assert (of_kubeconfig, connection.cluster) == ("one", "prod")
    assert stub.asked == []


def test_nodes_that_say_nothing_are_asked_again_only_after_a_while(
    nodes: Nodes, stub: Stub, connection: Connection
) -> None:
    nodes.silent = True
    name_cluster(connection, "")
    name_cluster(connection, "")

    assert len(stub.asked) == 1
    assert connection.known_cluster == ""
    assert connection.cluster == stub.url.partition("://")[2]

    nodes.silent, nodes.metadata = False, [{"labels": {AKS: "nodes-of-shop"}}]
    connection.name.asks_again = time.monotonic()
    name_cluster(connection, "")

    assert connection.cluster == "nodes-of-shop"
