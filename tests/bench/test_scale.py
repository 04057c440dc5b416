"""What the measurements of scale rest on: the server of made-up nodes is read as an API server is."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import urllib3

from reconciler.kubernetes.connection import NODES, Connection
from reconciler.kubernetes.scale.node_store import NodeStore, follow_nodes
from reconciler.kubernetes.scale.pages import count_all
from reconciler.kubernetes.wire.formats import node_format
from reconciler.kubernetes.wire.lists import list_all, list_pods
from reconciler.model.node import Wanted
from tests.bench.scale.many import Many
from tests.bench.scale.protocols import percentile
from tests.support import stub
from tests.support.controlplane.fill import Pool

WANTED = Wanted(frozenset({"Ready", "VMEventScheduled"}), "node-maintenance.dev")


def test_made_up_nodes_are_listed_and_a_change_is_watched_and_answered(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    with Many(1_003) as many, ThreadPoolExecutor(1) as threads:
        config.write_text(json.dumps(stub.kubeconfig(many.address, {"token": "token"})), encoding="utf-8")
        connection = Connection(str(config))

        nodes = list_all(connection, NODES, node_format(WANTED)).items
        names = [Pool("np").node_name(100_000 + number) for number in range(1_003)]
        assert [node.name for node in nodes] == names
        assert [node.labels["kubernetes.io/hostname"] for node in nodes] == names
        assert len({(node.uid, node.resource_version, node.provider_id) for node in nodes}) == 1_003
        assert list_pods(connection) == ()
        assert count_all(connection, NODES) == 1_003

        with follow_nodes(connection, WANTED, NodeStore()) as changes:
            assert next(changes).name == ""
            decided = threads.submit(many.change)
            change = next(changes)
            assert change.urgent
            cordon = json.dumps({"spec": {"unschedulable": True}})
            urllib3.request("PATCH", f"{many.address}{NODES / change.name}", body=cordon)
            assert decided.result(60) > 0
            assert next(changes).name == change.name

        listed = list_all(connection, NODES, node_format(WANTED)).items
        (changed,) = (node for node in listed if node.unschedulable)
        assert changed.name == change.name
        assert int(changed.resource_version) > max(int(node.resource_version) for node in nodes)
        connection.close()


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_a_percentile_is_the_least_value_that_the_share_does_not_exceed(share: float, expected: int) -> None:
    assert percentile(range(100, 0, -1), share) == expected
