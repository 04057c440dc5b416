"""The agent on a real API server, as its own ServiceAccount and under its admission policy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.manifests.applying import applied, ca_file, policy_in_force, token_on
from tests.real.manifests.permissions import AGENT, granted, missing, unused, used
from tests.sources.imds.agent.running import AgentProcess
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.imds import FakeImds, event, started

POOL = Pool("np")
NODE, VM = POOL.node_name(1), POOL.vm_name(1)
KEY = "node-maintenance.dev/imds"


@pytest.fixture
def agent(cluster: ControlPlane, imds: FakeImds, tmp_path: Path) -> Iterator[AgentProcess]:
    """One agent on the node of instance 1; another node is instance 10."""
    for instance in (1, 10):
        cluster.api.create("nodes", POOL.node(instance))
    with applied(cluster, "agent"):
        policy_in_force(cluster, NODE)
        token_file = tmp_path / "token"
        token_file.write_text(token_on(cluster, NODE), encoding="utf-8")
        with AgentProcess(
            tmp_path,
            *("--node", NODE, "--imds-address", imds.address, "--interval", "0.1", "--listen", "127.0.0.1:0"),
            *("--server", cluster.url, "--token-file", str(token_file), "--ca-file", ca_file(cluster)),
        ) as process:
            yield process


def published(cluster: ControlPlane, node: str = NODE) -> list[str] | None:
    """The ids of a Node's published events."""
    text = cluster.api.get("nodes", node)["metadata"]["annotations"].get(KEY)
    return None if text is None else [found["EventId"] for found in json.loads(text)["events"]]


def test_a_day_of_a_vm_arrives_on_its_own_node_in_three_writes_and_with_no_heartbeat(
    cluster: ControlPlane, imds: FakeImds, agent: AgentProcess
) -> None:
    agent.wait_until_ready()
    imds.wait_for_requests(3)
    assert published(cluster) is None
    freeze = event(VM, event_id="A")

    imds.announce(freeze, event(POOL.vm_name(10), event_id="B"))
    wait_for("Scheduled", lambda: published(cluster) == ["A"])
    imds.announce(started(freeze))
    wait_for("Started", lambda: len(agent.lines("published")) == 2)
    imds.announce()
    wait_for("none", lambda: published(cluster) == [])
    imds.wait_for_requests(5)

    assert published(cluster, POOL.node_name(10)) is None
    asked = [entry.verb for entry in cluster.audit_entries(user_agent=" agent") if entry.name == NODE]
    assert asked == ["get", "patch", "patch", "patch"]
    entries = used(cluster.audit_entries(user_agent=" agent"), AGENT)
    assert missing(granted("agent", AGENT), entries) == set()
    assert unused(granted("agent", AGENT), entries) == set()


def test_the_api_server_goes_and_comes_back_and_the_event_arrives(
    cluster: ControlPlane, imds: FakeImds, agent: AgentProcess
) -> None:
    agent.wait_until_ready()
    cluster.stop_apiserver()
    imds.announce(event(VM, event_id="A"))
    agent.wait_for_line("cannot publish")
    assert agent.readiness()[0] == 503

    cluster.start_apiserver()

    wait_for("published event", lambda: published(cluster) == ["A"], seconds=60)
    agent.wait_until_ready()
