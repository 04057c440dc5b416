"""`approve` on nodes of a stub: what is written and said, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.model.event import Kind
from reconciler.model.moments import to_text
from reconciler.model.record import KnownEvent, State, to_annotation
from reconciler.model.values import replace
from tests.jobs.instructing import Cluster, announced, below, three_nodes
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST

APPROVED = f"{PREFIX}/approved"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(three_nodes(tmp_path)) as made:
        yield made


def test_what_the_plan_says_waits_for_an_approval_can_be_approved_in_mode_observe(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.policy = "events: {Redeploy: {approval: true}}"
    announced(cluster, "a", 2)
    cluster.run("approve", "a")

    out = " ".join(capsys.readouterr().out.split())
    assert "a: Redeploy approved by " in out
    assert "a: its drain would start at " in out
    assert cluster.said("a", APPROVED) is not None


def test_an_approval_lists_the_events_of_the_moment(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = tmp_path / "maintenance.yaml"
    settings.write_text("events: {Reboot: {approval: true}}\n")
    cluster.annotations("a")[f"{PREFIX}/request"] = '{"kind": "Reboot", "id": "CHG-1"}'

    assert cluster.run("approve", "--all", "--config", str(settings)) == 0
    assert cluster.said("b", APPROVED) is None
    (event,) = cluster.said("a", APPROVED)["events"]
    assert (event["kind"], event["ids"]) == ("Reboot", ["CHG-1"])
    assert below(capsys).startswith("a: Reboot approved by ")

    assert cluster.run("approve", "a", "--config", str(settings)) == 1
    assert capsys.readouterr().err.endswith("a: nothing waits for an approval\n")
    assert cluster.run("approve", "a", "--cancel", "--config", str(settings)) == 0
    assert cluster.said("a", APPROVED) is None


def test_what_waits_is_what_the_node_reports_although_no_pass_has_recorded_it(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.policy = "events: {Reboot: {approval: true}}"
    cluster.annotations("a")[REQUEST] = '{"kind": "Reboot", "id": "CHG-1"}'

    assert cluster.run("approve", "--all") == 0
    assert below(capsys).startswith("a: Reboot approved by ")
    assert cluster.said("a", APPROVED)["events"][0]["ids"] == ["CHG-1"]

    assert cluster.run("approve", "--all") == 0
    assert below(capsys) == "nothing to change on any of these nodes\n"


def test_with_unknown_settings_what_is_announced_is_approved_whether_or_not_it_waits(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.policy = None
    cluster.annotations("a")[REQUEST] = '{"kind": "Reboot", "id": "CHG-1"}'

    assert cluster.run("approve", "--all") == 0
    assert "a: Reboot approved by " in below(capsys)


def test_with_unknown_settings_an_event_whose_drain_has_begun_is_not_approved(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.policy = None
    known = KnownEvent(Kind.REBOOT, NOW, ("CHG-1",), ("request",))
    for name, state in (("a", State.REQUIRED), ("b", State.IN_MAINTENANCE)):
        record = builders.remembered(builders.record(state, since=NOW, events=(known,)), f"uid-{name}")
        cluster.nodes[name]["metadata"]["annotations"][f"{PREFIX}/record"] = to_annotation(record)

    assert cluster.run("approve", "--all", "--reason", "CHG-42") == 0
    assert below(capsys).startswith("a: Reboot approved by ")
    said = cluster.said("a", APPROVED)
    assert (said["case"], said["events"][0]["ids"]) == (to_text(NOW), ["CHG-1"])
    assert [cluster.said(name, APPROVED) for name in "bc"] == [None, None]

    assert cluster.run("approve", "b") == 1
    assert capsys.readouterr().err.endswith("b: nothing waits for an approval\n")


def test_with_unknown_settings_an_event_that_comes_in_maintenance_is_approved_beside_the_first_one(
    cluster: Cluster,
) -> None:
    cluster.policy = None
    first, second = (KnownEvent(Kind.REBOOT, NOW, (name,), ("request",)) for name in ("CHG-1", "CHG-2"))

    def record(state: State, *events: KnownEvent) -> None:
        found = builders.remembered(builders.record(state, since=NOW, events=events), "uid-a")
        cluster.annotations("a")[f"{PREFIX}/record"] = to_annotation(found)

    record(State.REQUIRED, first)
    assert cluster.run("approve", "a") == 0
    record(State.IN_MAINTENANCE, first, replace(second, waits=True))
    assert cluster.run("approve", "a") == 0

    assert [one["ids"] for one in cluster.said("a", APPROVED)["events"]] == [["CHG-1"], ["CHG-2"]]


def test_with_unknown_settings_a_node_with_workflows_is_approved_for_them(cluster: Cluster) -> None:
    cluster.policy = None
    cluster.annotations("a")[f"{PREFIX}/maintenance-data"] = "{}"

    assert cluster.run("approve", "a") == 0
    assert cluster.said("a", APPROVED)["workflows"] is True
    assert cluster.run("approve", "b") == 1


def test_a_node_that_is_named_is_approved_for_its_workflows_if_a_check_asks_for_it(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = tmp_path / "maintenance.yaml"
    settings.write_text("profiles: {instances: {check: [{type: approved, name: said_yes}]}}\n")

    assert cluster.run("approve", "a", "--config", str(settings)) == 0
    assert below(capsys).startswith("a: its workflows approved by ")
    assert cluster.said("a", APPROVED)["workflows"] is True
    assert "events" not in cluster.said("a", APPROVED)

    assert cluster.run("approve", "--all", "--config", str(settings)) == 0
    assert cluster.said("b", APPROVED) is None


def test_an_approval_and_its_withdrawal_say_what_they_do_not_do(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.policy = "events: {Redeploy: {approval: true}}"
    announced(cluster, "a", 2)

    cluster.run("approve", "a", "--until", "1h")
    cluster.run("approve", "a", "--cancel")

    out = capsys.readouterr().out
    assert "as holds, windows, freezes and the budget permit. It ends at " in out
    assert "To withdraw the approval: reconciler approve a --cancel\n" in out
    assert "\nA drain that runs is not stopped. To stop it: reconciler hold a --now\n" in out


def test_an_approval_that_is_withdrawn_twice_says_nothing_of_what_follows(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("approve", "a", "--cancel", "--output", "json") == 0

    # Nothing follows from what changes nothing.
    assert json.loads(capsys.readouterr().out)["means"] == []


def test_an_approval_names_the_user_that_the_api_server_sees(cluster: Cluster) -> None:
    cluster.policy = "events: {Redeploy: {approval: true}}"
    cluster.user = "alice@example.com"
    announced(cluster, "a", 2)

    cluster.run("approve", "a")

    assert cluster.said("a", APPROVED)["by"] == "alice@example.com"
