"""What a person does by hand is told in Events on the node, and goes on without the permission for them."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.by_hand import person
from tests.jobs.stub_cluster import StubCluster, node
from tests.support.stub import Answer, Asked, status


class Cluster(StubCluster):
    """One node, and how often Events were refused, if they are."""

    refused = 0

    def told(self) -> list[tuple[str, str]]:
        return [(one["type"], one["reason"]) for one in self.events]

    def instead(self, asked: Asked) -> Answer | None:
        if not (self.refused and asked.path.endswith("/events")):
            return None
        self.refused += 1
        return status(403, "Forbidden", "no")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path, node("n"))) as made:
        yield made


def unmanaged() -> dict[str, Any]:
    """A pod that a drain refuses."""
    return {
        "metadata": {"name": "naked", "namespace": "web", "uid": "p", "resourceVersion": "1"},
        "spec": {"nodeName": "n", "containers": []},
        "status": {"phase": "Running"},
    }


def test_a_drain_by_hand_and_its_release_are_told_on_the_node(cluster: Cluster) -> None:
    assert cluster.run("drain", "n") == 0
    assert cluster.told() == [("Normal", "MaintenanceCordon"), ("Normal", "MaintenanceDrained")]
    assert all(person() in one["message"] for one in cluster.events)

    assert cluster.run("release", "n") == 0
    assert cluster.told()[2:] == [("Normal", "MaintenanceStopped")]
    assert cluster.events[-1]["message"] == f"released and uncordoned by {person()}, by hand"
    assert {one["involvedObject"]["name"] for one in cluster.events} == {"n"}


def test_a_drain_that_a_pod_refuses_is_a_warning_that_names_the_pod(cluster: Cluster) -> None:
    cluster.pods.append(unmanaged())

    assert cluster.run("drain", "n") == 1
    assert cluster.told() == [("Normal", "MaintenanceCordon"), ("Warning", "MaintenanceStopped")]
    assert "web/naked" in cluster.events[-1]["message"]


def test_what_changes_nothing_writes_no_event(cluster: Cluster) -> None:
    assert cluster.run("release", "n") == 0
    assert cluster.run("drain", "n", "--dry-run") == 0
    assert cluster.events == []


def test_without_the_permission_the_drain_goes_on_and_says_so_once(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refused = 1

    assert cluster.run("drain", "n") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "n: drained, 0 pods gone"
    assert printed.err.count("no Events are written (needs create events in default)") == 1
    assert cluster.refused == 2


def test_a_container_without_a_name_for_its_user_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 65532")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert person().startswith(f"{os.getuid()}@")


def pod_of_a_set(name: str) -> dict[str, Any]:
    """A pod that a drain evicts."""
    found = unmanaged()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": True}
    found["metadata"] |= {"name": name, "uid": name, "ownerReferences": [owner]}
    return found


def writes(cluster: Cluster) -> list[str]:
    """The requests that change something."""
    return [f"{one.method} {one.path}" for one in cluster.stub.asked if one.method != "GET"]


def test_a_dry_run_of_a_drain_says_what_it_would_do(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.pods.append(pod_of_a_set("web-1"))

    assert cluster.run("drain", "n", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines() == [
        "n: would be cordoned",
        "n: would evict web/web-1",
        "dry run: nothing was written",
    ]
    assert writes(cluster) == []


def test_a_dry_run_of_a_drain_that_a_pod_refuses_promises_no_eviction(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.pods += [pod_of_a_set("web-1"), unmanaged()]

    assert cluster.run("drain", "n", "--dry-run") == 1
    assert capsys.readouterr().out.splitlines() == [
        "n: would be cordoned",
        "n: would not be drained: 1 pod may not be evicted",
        "n: would not evict web/naked: Pods that declare no controller (use --force to override)",
        "n: would not evict web/web-1",
        "dry run: nothing was written",
    ]


def test_a_dry_run_of_a_drain_knows_that_somebody_else_drains_the_node(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cluster.run("drain", "n") == 0
    monkeypatch.setattr("jobs.commands.drain.person", lambda: "somebody@else")
    capsys.readouterr()

    assert cluster.run("drain", "n", "--dry-run", "--output", "json") == 1
    (refused,) = json.loads(capsys.readouterr().out)["refused"]
    assert refused["node"] == "n"
    assert "is draining it by hand" in refused["because"]


def test_a_dry_run_of_a_release_says_what_it_would_do(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("drain", "n") == 0
    before, events = writes(cluster), len(cluster.events)
    capsys.readouterr()

    assert cluster.run("release", "n", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines() == [
        "n: would be released and uncordoned",
        "dry run: nothing was written",
    ]
    assert (writes(cluster), len(cluster.events)) == (before, events)
    assert cluster.run("release", "n") == 0
    assert capsys.readouterr().out.splitlines() == ["n: released and uncordoned"]
    assert cluster.run("release", "--all", "--dry-run") == 0
    assert "no node has labels or annotations" in capsys.readouterr().out
