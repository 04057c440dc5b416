"""ConfigMaps in namespaces on the API server: what one namespace refuses harms that one only."""

from __future__ import annotations

import logging

import pytest

from reconciler.features.pods import PUBLISHED
from reconciler.features.pods.publisher import APART, Publisher
from reconciler.kubernetes.connection import Connection
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

DATA, LATER = {"moved": "", "tonight": ""}, {"moved": "", "tonight": "{}"}
NAMES = ("fine", "full", "ending", "taken", "absent")


@pytest.fixture
def hostile(cluster: ControlPlane) -> ControlPlane:
    """A namespace that takes a ConfigMap, and others that do not."""
    api = cluster.api
    for name in ("fine", "full", "ending", "taken"):
        api.create_namespace(name)
    quota = {"metadata": {"name": "none", "namespace": "full"}, "spec": {"hard": {"count/configmaps": "0"}}}
    api.create("resourcequotas", quota)
    taken = {"metadata": {"name": PUBLISHED, "namespace": "taken"}, "data": {"mine": "yes"}}
    api.create("configmaps", taken)
    wait_for("the quota", lambda: "hard" in api.get("resourcequotas", "none", "full")["status"])
    # Nothing takes it away before the test has ended.
    api.delete("namespaces", "ending")
    return cluster


def test_each_namespace_that_refuses_is_said_once_and_the_others_are_written(
    hostile: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    connection = Connection(str(hostile.kubeconfig))
    publisher = Publisher(connection, lambda: None, "node-maintenance", seconds=lambda: now)

    with caplog.at_level(logging.WARNING):
        for data in (DATA, DATA, LATER):
            publisher.turn(dict.fromkeys(NAMES, data), ())
            now += APART
    connection.close()

    def found(name: str) -> object:
        made = hostile.api.find("configmaps", PUBLISHED, namespace=name)
        return made and made["data"]

    nothing = dict.fromkeys(NAMES, None)
    assert {name: found(name) for name in NAMES} == {**nothing, "fine": LATER, "taken": {"mine": "yes"}}
    said = sorted(message.partition(" the namespace ")[2] for message in caplog.messages)
    assert [message.partition(":")[0] for message in said] == ["ending", "full", "taken"]
    assert "because it is being terminated" in said[0]
    assert "exceeded quota" in said[1]
    assert "which is not of a reconciler" in said[2]
