"""Notices as Kubernetes Events, on a real API server; a stub gives the refusals."""

from __future__ import annotations

import subprocess

import pytest

from reconciler.features.events.kubernetes_events import KubernetesEvents
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.ports import Notification
from tests.real.clients.conftest import WANTED
from tests.support.controlplane.fill import fill
from tests.support.controlplane.server import ControlPlane


def test_kubectl_describe_shows_our_events(
    cluster: ControlPlane, ours: Cluster, connection: Connection
) -> None:
    fill(cluster.kubeconfig, nodes=1)
    node = ours.nodes(WANTED)[0]
    notice = Notice("Cordoned", "x" * 2000, NoticeType.WARNING)
    KubernetesEvents(connection, guard=lambda: None).notify(Notification(node.name, node.uid, notice))
    command = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig), "describe", "node", node.name]
    reported = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout

    assert "Cordoned" in reported
    assert "node-maintenance-reconciler" in reported


def test_a_notice_that_is_sent_again_is_one_event(
    cluster: ControlPlane, ours: Cluster, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    fill(cluster.kubeconfig, nodes=1)
    node = ours.nodes(WANTED)[0]
    people = KubernetesEvents(connection, guard=lambda: None)
    for since in ("then", "then", "later"):
        notice = Notice("MaintenanceMissed", "words", NoticeType.WARNING, once=since)
        people.notify(Notification(node.name, node.uid, notice))
    command = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig), "get", "events", "-o", "name"]
    names = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.split()

    assert len([one for one in names if one.startswith(f"event/{node.name}.")]) == 2
    assert caplog.text == ""
