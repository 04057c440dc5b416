"""`explain` of a pod that was moved: what was done to it, what runs instead, and where to look."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.kubernetes.events import COMPONENT
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.record import DrainRecord, to_annotation
from tests.jobs.stub_cluster import StubCluster, node, pod
from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes
from tests.support.stub import Answer, Asked, status

MOVED = "pods are evicted from node n by node-maintenance-reconciler: Redeploy"


def event(kind: str, name: str, reason: str, message: str, **more: Any) -> dict[str, Any]:
    about = {"kind": kind, "name": name}
    at = "2026-11-21T11:00:00Z"
    return {"involvedObject": about, "reason": reason, "message": message, "lastTimestamp": at, **more}


def of_ours(name: str = "web") -> dict[str, Any]:
    source = {"source": {"component": COMPONENT}}
    return event("Deployment", name, "MaintenanceMovesPods", MOVED, **source)


class Cluster(StubCluster):
    """`forbidden`: Events may not be read."""

    forbidden = False

    def instead(self, asked: Asked) -> Answer | None:
        return status(403, "Forbidden", "no") if self.forbidden and asked.path.endswith("/events") else None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path, node("n"), node("other"))) as made:
        made.pods.append(pod("shop", "web-5c84-new", "other"))
        yield made


def explained(cluster: Cluster, capsys: pytest.CaptureFixture[str], name: str = "shop/web-5c84-old") -> str:
    assert cluster.run("explain", name) == 0
    return capsys.readouterr().out


def test_a_pod_that_was_moved_says_who_did_it_when_and_why_and_what_runs_instead(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.events += [of_ours(), of_ours("ledger"), event("Pod", "web-5c84-old", "Killing", "Stopping")]

    text = explained(cluster, capsys)

    assert "shop/web-5c84-old: there is no such pod now\n" in text
    (moved,) = [line for line in text.splitlines() if line.startswith("  moved     ")]
    assert " ago, at " in moved
    assert moved.endswith(f": {MOVED} [MaintenanceMovesPods on Deployment web]")
    assert "ledger" not in text
    assert "Stopping [Killing on Pod web-5c84-old]\n" in text
    assert "  instead   its owner runs shop/web-5c84-new on other\n" in text

    assert cluster.run("explain", "-n", "shop", "web-5c84-old", "-o", "json") == 0
    past = json.loads(capsys.readouterr().out)["past"]
    assert [seen["reason"] for seen in past["events"] if seen["ours"]] == ["MaintenanceMovesPods"]
    assert past["successors"] == [{"pod": "shop/web-5c84-new", "node": "other"}]


def test_a_pod_that_is_gone_was_moved_by_no_drain_of_another_node_or_before_it_was_there(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = {**of_ours(), "message": MOVED.replace("node n ", "node n-2 ")}
    placed = event("Pod", "web-5c84-old", "Scheduled", "Successfully assigned shop/web-5c84-old to n")
    # Schedulers write fractions of a second, and this program whole seconds.
    placed |= {"lastTimestamp": None, "eventTime": "2026-11-21T11:00:00.700000Z"}
    before = {**of_ours(), "lastTimestamp": "2026-11-21T10:59:59Z"}
    cluster.events += [elsewhere, before, placed]

    text = explained(cluster, capsys)
    assert "  moved     " not in text
    assert "Successfully assigned" in text

    cluster.events.append(of_ours())
    (moved,) = [line for line in explained(cluster, capsys).splitlines() if line.startswith("  moved     ")]
    assert MOVED in moved


def test_a_pod_that_runs_says_what_was_done_to_the_pods_of_its_owner(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.events += [of_ours(), event("Pod", "web-5c84-new", "Pulled", "image")]

    text = explained(cluster, capsys, "shop/web-5c84-new")

    assert f"{MOVED} [MaintenanceMovesPods on Deployment web]" in text
    assert "Pulled" not in text


def test_without_an_event_it_says_where_to_look(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.annotations("other")[REQUEST] = '{"kind": "Reboot"}'
    text = explained(cluster, capsys)

    assert "no Event says why. The API server keeps Events for an hour by default" in text
    assert "the log of the reconciler has each drained node, in the lines with the event `case`" in text
    # A drain that a pass would only begin has moved nothing.
    assert "  drained " not in text


def test_without_an_event_it_names_the_nodes_in_maintenance(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    drain = DrainRecord(NOW - minutes(20), done=NOW - minutes(15))
    held = builders.remembered(builders.record(drain=drain, since=NOW - minutes(20)), "uid-n")
    cluster.annotations()[f"{DEFAULT_PREFIX}/record"] = to_annotation(held)
    cluster.nodes["n"]["spec"]["unschedulable"] = True

    assert "  drained   n: the drain began " in explained(cluster, capsys)


def test_events_that_may_not_be_read_are_not_taken_for_none(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.forbidden = True

    text = explained(cluster, capsys)

    assert "the Events of its namespace could not be read: needs list events in shop" in text
    assert "no Event says why" not in text


def test_a_name_that_nothing_knows_is_an_error(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.run("explain", "shop/wab-5c84-new") == 1

    assert "there is no such pod; did you mean web-5c84-new?" in capsys.readouterr().err
