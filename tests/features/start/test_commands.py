"""`reconciler start` on nodes of a stub: what is written and said, what is refused, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.event import Kind
from reconciler.model.moments import to_text
from reconciler.model.record import to_annotation
from tests.jobs.stub_cluster import StubCluster, node
from tests.support import builders
from tests.support.builders import PREFIX, RECORD, REQUEST
from tests.support.stub import Answer, Asked, json_answer

KEY, HOLD = f"{PREFIX}/start", f"{PREFIX}/hold"
CLOSED = "mode: Enforce\nbudget: {maxUnavailable: 0}\nevents: {Redeploy: {approval: true}}"


class Cluster(StubCluster):
    """Two nodes, of which `pool-000001` has an announced redeploy. `at_patch` is called before each patch."""

    policy = CLOSED

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, node("pool-000001"), node("pool-000002"))
        date = to_text(datetime.now(UTC).replace(microsecond=0) + timedelta(hours=5))
        self.annotations("pool-000001")[REQUEST] = f'{{"kind":"Redeploy","notBefore":"{date}"}}'
        for each in self.nodes.values():
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            each["status"] = {"conditions": [ready]}

    def at_patch(self) -> None:
        """Nothing, unless a test sets it."""

    @property
    def said(self) -> Any:
        text = self.annotations("pool-000001").get(KEY)
        return None if text is None else json.loads(text)

    def instead(self, asked: Asked) -> Answer | None:
        if asked.path.endswith("/configmaps/maintenance-policy"):
            return json_answer({"metadata": {"name": "x"}, "data": {"maintenance.yaml": self.policy}})
        if asked.path.endswith("/configmaps") and asked.method == "GET":
            return json_answer({"kind": "ConfigMapList", "metadata": {}, "items": []})
        if asked.method == "PATCH" and "/nodes/" in asked.path:
            self.at_patch()
        return None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


def document(cluster: Cluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    cluster.run("start", *arguments, "--yes", "-o", "json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["start"]
    return found


def test_a_start_now_names_what_it_overrules_and_writes_who_and_why(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(cluster, capsys, "000001", "--now", "--reason", "disk fails")

    assert (found["node"], found["ok"], found["changed"]) == ("pool-000001", True, True)
    assert {"approved"} <= {hold["code"] for hold in found["overrules"]}
    assert found["waits"] == []
    assert found["begins"] == "its drain begins with the next pass"
    assert cluster.said.keys() == {"by", "at", "reason", "uid", "now", "events"}
    assert (cluster.said["reason"], cluster.said["now"]) == ("disk fails", True)
    assert "started by" in cluster.events[0]["message"]


def test_a_start_waits_for_what_only_a_start_now_overrules(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(cluster, capsys, "pool-000001")

    assert {hold["code"] for hold in found["overrules"]} == {"approved"}
    assert {hold["code"] for hold in found["waits"]} == {"budgetLeft"}
    assert "now" not in cluster.said


def test_nobody_can_be_asked_without_a_terminal(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.run("start", "pool-000001", "--now") == 1

    said = capsys.readouterr()
    assert "reconciler start pool-000001 --now --yes" in said.err
    assert "[budgetLeft]" in said.out or "[approved]" in said.out
    assert cluster.said is None


@pytest.mark.parametrize(
    ("name", "policy", "annotations", "says"),
    [
        pytest.param("pool-000002", CLOSED, {}, "no maintenance of it is announced", id="no event"),
        pytest.param("pool-000001", "mode: Observe", {}, "mode: Enforce", id="mode Observe"),
        pytest.param("pool-000001", "mode: Finish", {}, "mode: Enforce", id="mode Finish"),
        pytest.param("pool-000001", CLOSED, {HOLD: '{"by": "bob@desk"}'}, "held by bob@desk", id="held"),
        pytest.param(
            "pool-000001",
            "mode: Enforce\nnodeSelector: {a: b}",
            {},
            "nodeSelector does not select it",
            id="not ours",
        ),
    ],
)
def test_what_a_start_does_not_overrule_is_refused_with_what_to_do(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    name: str,
    policy: str,
    annotations: dict[str, str],
    says: str,
) -> None:
    cluster.policy = policy
    cluster.annotations(name).update(annotations)

    assert cluster.run("start", name, "--now", "--yes") == 1

    assert says in " ".join(capsys.readouterr().err.split())
    assert cluster.said is None


def test_an_event_that_nothing_names_before_a_pass_has_recorded_it_is_refused(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.annotations("pool-000001")[REQUEST] = '{"kind":"Redeploy"}'

    assert cluster.run("start", "pool-000001", "--now", "--yes") == 1

    assert "start it after the next pass" in " ".join(capsys.readouterr().err.split())
    assert cluster.said is None


def test_a_drain_that_runs_is_not_started_again(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    date = json.loads(cluster.annotations("pool-000001")[REQUEST])["notBefore"]
    event = builders.known(Kind.REDEPLOY, not_before=datetime.fromisoformat(date), sources=("request",))
    held = builders.remembered(builders.record(events=(event,)), "uid-pool-000001")
    cluster.annotations("pool-000001")[RECORD] = to_annotation(held)
    cluster.nodes["pool-000001"]["spec"]["unschedulable"] = True

    assert cluster.run("start", "pool-000001", "--now", "--yes") == 0

    assert "it is drained since" in " ".join(capsys.readouterr().out.split())
    assert cluster.said is None


def test_of_two_people_at_once_the_second_reads_the_start_of_the_first(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("start", "pool-000001", "--yes", "--reason", "first") == 0
    first = cluster.annotations("pool-000001").pop(KEY)

    def other() -> None:
        cluster.annotations("pool-000001")[KEY] = first

    cluster.at_patch = other  # type: ignore[method-assign]
    found = document(cluster, capsys, "pool-000001", "--reason", "second")

    assert (found["ok"], found["changed"]) == (True, False)
    assert found["message"].startswith("started already by ")
    assert cluster.annotations("pool-000001")[KEY] == first


def test_a_hold_that_comes_at_the_same_time_wins_and_is_named(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def other() -> None:
        cluster.annotations("pool-000001")[HOLD] = '{"by": "bob@desk", "reason": "disk copy"}'

    cluster.at_patch = other  # type: ignore[method-assign]

    assert cluster.run("start", "pool-000001", "--now", "--yes") == 1

    said = " ".join(capsys.readouterr().err.split())
    assert "it is held by bob@desk: disk copy; reconciler resume pool-000001 ends that" in said
    assert (cluster.said, cluster.events) == (None, [])


def test_a_start_becomes_a_start_now(cluster: Cluster) -> None:
    cluster.run("start", "pool-000001", "--yes")
    cluster.run("start", "pool-000001", "--now", "--yes")

    assert cluster.said["now"] is True


def test_a_reason_has_a_limit(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.run("start", "pool-000001", "--yes", "--reason", "x" * 5000) == 2
    assert "--reason: the reason has 5000 characters" in capsys.readouterr().err
