"""The agents of k8s/agent, and the IMDS that they read: a fake in the network of each node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.nodes.cluster import Cluster, Object
from tests.nodes.node import POOL, Node
from tests.support.fakes import imds
from tests.support.fakes.imds import FakeImds

AGENTS = "node-maintenance-agent"
"""Their namespace."""

_PORT = 16916
"""Of the fake, on the loopback address of each node."""


def fake_imds(node: Node) -> FakeImds:
    """Return the IMDS of a node; close it before the node loses power."""
    return node.within(lambda: FakeImds(port=_PORT))


def event(node: Node, kind: str, event_id: str, notice: timedelta) -> imds.Event:
    """Return an event of a node's VM, so far from now."""
    at = (datetime.now(UTC) + notice).strftime("%a, %d %b %Y %H:%M:%S GMT")
    return imds.event(POOL.vm_name(node.number), kind, event_id=event_id, not_before=at, duration=-1)


def agents(cluster: Cluster) -> list[Object]:
    """Return k8s/agent as shipped, but for the address of IMDS."""
    objects = cluster.manifests("agent")
    (daemon_set,) = [each for each in objects if each["kind"] == "DaemonSet"]
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    container["env"].append({"name": "IMDS_ADDRESS", "value": f"http://127.0.0.1:{_PORT}"})
    return objects
