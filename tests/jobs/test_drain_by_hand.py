"""A drain by hand: what it loads, the holds that it respects, and the Events that it writes."""

from __future__ import annotations

import getpass
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from jobs.cli import main
from jobs.runtime.by_hand import person
from reconciler.model.instructions import PersonHold, Word, fleet_text, hold_text, unverified
from tests.jobs.stub_cluster import StubCluster, node
from tests.support.builders import NOW, PREFIX
from tests.support.stub import Answer, Asked, Stub, status

pytestmark = pytest.mark.heavy


def hold(scope: str = "", *, stops: bool = False) -> PersonHold:
    return PersonHold(Word("alice@laptop", NOW, None, "disk copy", scope), stops)


class Cluster(StubCluster):
    """A node of the pool `np`, and the ledger. `forbidden`: it may not be read."""

    forbidden = False
    at_cordon = ""
    """The holds of the ledger from the cordon on."""

    def drain(self, *options: str) -> int:
        return self.run("drain", "n", *options)

    def holds(self, found: PersonHold) -> None:
        self.annotations()[f"{PREFIX}/hold"] = hold_text(found)

    @property
    def cordoned(self) -> bool:
        return bool(self.nodes["n"]["spec"].get("unschedulable"))

    def instead(self, asked: Asked) -> Answer | None:
        if asked.method == "PATCH" and self.at_cordon:
            self.ledger = {"holds": self.at_cordon}
        if "/configmaps" in asked.path and (self.forbidden or not asked.path.endswith("-ledger")):
            return status(403, "Forbidden", "no")
        return None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path, node("n", agentpool="np"))) as made:
        yield made


@pytest.mark.parametrize("scope", ["", "all", "pool np"])
def test_a_held_node_is_refused_with_who_holds_it_since_when_and_why(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], scope: str
) -> None:
    if scope:
        cluster.ledger = {"holds": fleet_text([hold(scope)])}
    else:
        cluster.holds(hold())

    assert cluster.drain() == 1
    assert not cluster.cordoned
    said = capsys.readouterr().err
    assert "held by alice@laptop since 2026-11-21T12:00:00Z: disk copy; reconciler resume" in said
    assert "--ignore-holds drains it all the same" in said


def test_a_dry_run_says_that_a_held_node_would_not_be_drained(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.holds(hold())

    assert cluster.drain("--dry-run", "--output", "json") == 1
    (refused,) = json.loads(capsys.readouterr().out)["refused"]
    assert "held by alice@laptop" in refused["because"]


def test_with_ignore_holds_the_node_is_drained_also_after_a_hold_that_stops_drains(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.holds(hold(stops=True))

    assert cluster.drain("--ignore-holds") == 0
    assert cluster.cordoned
    assert "n: warning: it is held by alice@laptop since" in capsys.readouterr().err


def test_a_hold_of_all_nodes_that_comes_with_the_cordon_stops_the_drain_before_it_begins(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.at_cordon = fleet_text([hold("all", stops=True)])

    assert cluster.drain() == 1
    assert "n: all nodes are held by alice@laptop" in capsys.readouterr().err
    assert cluster.cordoned
    assert "nothing was evicted" in cluster.events[-1]["message"]


def test_a_drain_that_has_begun_goes_on_after_a_hold_that_stops_no_drain(cluster: Cluster) -> None:
    assert cluster.drain() == 0
    cluster.holds(hold())
    assert cluster.drain() == 0
    cluster.holds(hold(stops=True))
    assert cluster.drain() == 1


def test_without_access_to_the_ledger_a_warning_says_what_is_not_known(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.forbidden = True

    assert cluster.drain() == 0
    said = capsys.readouterr().err
    assert "warning: holds with --all and --pool are not known: needs get configmaps" in said


DRAINED = "n: drained, 0 pods gone; it stays out of service until `reconciler release n`"
UNNEEDED = (
    "pydantic",
    "kubernetes",
    "opentelemetry",
    "prometheus_client",
    "reconciler.run",
    "reconciler.settings",
    "reconciler.passes.decide",
)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Stub]:
    """An API server with one empty node, which remembers its cordon; its watches stay silent."""
    with closing(StubCluster(tmp_path, node("n"))) as cluster:
        yield cluster.stub


@pytest.mark.heavy
def test_a_whole_drain_imports_neither_a_pass_nor_the_settings_nor_the_official_client(
    api: Stub, tmp_path: Path
) -> None:
    config = api.write_kubeconfig(tmp_path / "config")
    command = [sys.executable, "-X", "importtime", "-m", "jobs", "drain", "n", "--kubeconfig", str(config)]
    done = run(command, capture_output=True, text=True, timeout=60, check=False)
    loaded = set(re.findall(r"^import time:.*\|\s+([\w.]+)$", done.stderr, re.MULTILINE))

    assert (done.returncode, done.stdout) == (0, f"n: cordoned\n{DRAINED}\n")
    assert {"reconciler.drain.drainer", "reconciler.kubernetes.eviction"} <= loaded
    assert [name for name in loaded for part in UNNEEDED if f"{name}.".startswith(f"{part}.")] == []
    patches = [json.loads(asked.body) for asked in api.asked if asked.method == "PATCH"]
    of_cordon = [one for patch in patches for one in patch if one["path"] == "/spec/unschedulable"]
    assert [(one["op"], one["value"]) for one in of_cordon] == [("test", None), ("add", True)]


def test_a_drain_is_traced_where_the_environment_has_a_receiver(
    api: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Stub(lambda _: Answer(b"", content_type="application/x-protobuf"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    try:
        assert main(["drain", "n", "--kubeconfig", str(api.write_kubeconfig(tmp_path / "config"))]) == 0
    finally:
        receiver.close()

    sent = [ExportTraceServiceRequest.FromString(one.body) for one in receiver.asked]
    resources = [each for one in sent for each in one.resource_spans]
    spans = [span for each in resources for scope in each.scope_spans for span in scope.spans]
    (drain,) = [span for span in spans if span.name == "drain"]
    values = {one.key: one.value.string_value for one in drain.attributes}
    assert (values["k8s.node.name"], values["node_maintenance.phase"]) == ("n", "drained")
    assert "GET nodes" in {span.name for span in spans}
    assert {span.parent_span_id for span in spans if span is not drain} == {drain.span_id}


class Refusing(StubCluster):
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
def refusing(tmp_path: Path) -> Iterator[Refusing]:
    with closing(Refusing(tmp_path, node("n"))) as made:
        yield made


def unmanaged() -> dict[str, Any]:
    """A pod that a drain refuses."""
    return {
        "metadata": {"name": "naked", "namespace": "web", "uid": "p", "resourceVersion": "1"},
        "spec": {"nodeName": "n", "containers": []},
        "status": {"phase": "Running"},
    }


def test_a_drain_by_hand_and_its_release_are_told_on_the_node(refusing: Refusing) -> None:
    assert refusing.run("drain", "n") == 0
    assert refusing.told() == [("Normal", "MaintenanceCordon"), ("Normal", "MaintenanceDrained")]
    assert all(person() in one["message"] for one in refusing.events)

    assert refusing.run("release", "n") == 0
    assert refusing.told()[2:] == [("Normal", "MaintenanceStopped")]
    assert refusing.events[-1]["message"] == f"released and uncordoned by {unverified(person())}, by hand"
    assert {one["involvedObject"]["name"] for one in refusing.events} == {"n"}


def test_a_drain_that_a_pod_refuses_is_a_warning_that_names_the_pod(refusing: Refusing) -> None:
    refusing.pods.append(unmanaged())

    assert refusing.run("drain", "n") == 1
    assert refusing.told() == [("Normal", "MaintenanceCordon"), ("Warning", "MaintenanceStopped")]
    assert "web/naked" in refusing.events[-1]["message"]


def test_what_changes_nothing_writes_no_event(refusing: Refusing) -> None:
    assert refusing.run("release", "n") == 0
    assert refusing.run("drain", "n", "--dry-run") == 0
    assert refusing.events == []


def test_without_the_permission_the_drain_goes_on_and_says_so_once(
    refusing: Refusing, capsys: pytest.CaptureFixture[str]
) -> None:
    refusing.refused = 1

    assert refusing.run("drain", "n") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == DRAINED
    assert printed.err.count("no Events are written (needs create events in default)") == 1
    assert refusing.refused == 2


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


def writes(refusing: Refusing) -> list[str]:
    """The requests that change something; the one that asks who we are does not."""
    asked = (f"{one.method} {one.path}" for one in refusing.stub.asked if one.method != "GET")
    return [one for one in asked if not one.endswith("/selfsubjectreviews")]


def test_a_dry_run_of_a_drain_says_what_it_would_do(
    refusing: Refusing, capsys: pytest.CaptureFixture[str]
) -> None:
    refusing.pods.append(pod_of_a_set("web-1"))

    assert refusing.run("drain", "n", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines() == [
        "n: would be cordoned",
        "n: would evict web/web-1",
        "dry run: nothing was written",
    ]
    assert writes(refusing) == []


def test_a_dry_run_of_a_drain_that_a_pod_refuses_promises_no_eviction(
    refusing: Refusing, capsys: pytest.CaptureFixture[str]
) -> None:
    refusing.pods += [pod_of_a_set("web-1"), unmanaged()]

    assert refusing.run("drain", "n", "--dry-run") == 1
    assert capsys.readouterr().out.splitlines() == [
        "n: would be cordoned",
        "n: would not be drained: 1 pod may not be evicted",
        "n: would not evict web/naked: Pods that declare no controller (use --force to override)",
        "n: would not evict web/web-1",
        "dry run: nothing was written",
    ]


def test_a_dry_run_of_a_drain_knows_that_somebody_else_drains_the_node(
    refusing: Refusing, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusing.run("drain", "n") == 0
    monkeypatch.setattr("jobs.runtime.by_hand.person", lambda: "somebody@else")
    capsys.readouterr()

    assert refusing.run("drain", "n", "--dry-run", "--output", "json") == 1
    (refused,) = json.loads(capsys.readouterr().out)["refused"]
    assert refused["node"] == "n"
    assert "is draining it by hand" in refused["because"]


def test_a_dry_run_of_a_release_says_what_it_would_do(
    refusing: Refusing, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusing.run("drain", "n") == 0
    before, events = writes(refusing), len(refusing.events)
    capsys.readouterr()

    assert refusing.run("release", "n", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines() == [
        "n: would be released and uncordoned",
        "dry run: nothing was written",
    ]
    assert (writes(refusing), len(refusing.events)) == (before, events)
    assert refusing.run("release", "n") == 0
    assert capsys.readouterr().out.splitlines() == ["n: released and uncordoned"]
    # Who released it stands there until the next pass.
    assert refusing.run("release", "--all") == 0
    capsys.readouterr()
    assert refusing.run("release", "--all", "--dry-run") == 0
    assert "no node has labels or annotations" in capsys.readouterr().out
