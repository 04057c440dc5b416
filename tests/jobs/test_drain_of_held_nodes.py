"""`reconciler drain` and the holds of people: what it refuses, what it says, and what ignores a hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.model.instructions import PersonHold, Word, fleet_text, hold_text
from tests.jobs.stub_cluster import StubCluster, node
from tests.support.builders import NOW, PREFIX
from tests.support.stub import Answer, Asked, status


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
