"""`reconciler release --all`: who has released the nodes is kept for the next pass, outside of the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.model.instructions import Word, said_before
from tests.jobs.instructing import HOLD, Cluster, three_nodes
from tests.support.stub import Answer, Asked, status

LEDGER = "/configmaps/node-maintenance-ledger"
PASS = {"lastStart": "2026-11-21T11:00:00Z"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(three_nodes(tmp_path)) as made:
        made.user = "alice@example.com"
        made.ledger = dict(PASS)
        assert made.run("hold", "a", "b") == 0
        yield made


def test_it_is_kept_in_the_ledger_before_the_nodes_are_written(cluster: Cluster) -> None:
    held: list[bool] = []

    def watched(asked: Asked) -> Answer | None:
        if asked.method == "PATCH" and asked.path.endswith(LEDGER):
            held.append(cluster.said("a", HOLD) is not None)
        return type(cluster).instead(cluster, asked)

    cluster.instead = watched  # type: ignore[method-assign]

    assert cluster.run("release", "--all") == 0
    assert held == [True]
    assert cluster.ledger is not None
    (ended,) = said_before(cluster.ledger["endedHolds"])
    assert (ended.done, ended.did, ended.by, ended.word) == (
        "released",
        "",
        "alice@example.com",
        Word(scope="all"),
    )
    assert cluster.ledger["lastStart"] == PASS["lastStart"]
    assert [each["metadata"]["annotations"] for each in cluster.nodes.values()] == [{}, {}, {}]
    # There is nothing left to release.
    assert cluster.run("release", "--all") == 0
    assert len(said_before(cluster.ledger["endedHolds"])) == 1


@pytest.mark.parametrize("arguments", [("--all", "--dry-run"), ("a",)])
def test_a_dry_run_and_a_release_of_some_nodes_write_no_ledger(
    cluster: Cluster, arguments: tuple[str, ...]
) -> None:
    assert cluster.run("release", *arguments) == 0
    assert cluster.ledger == PASS


def test_without_a_ledger_it_is_created(cluster: Cluster) -> None:
    cluster.ledger = None

    assert cluster.run("release", "--all") == 0
    assert cluster.ledger is not None
    assert cluster.ledger.keys() == {"endedHolds"}


@pytest.mark.parametrize(
    ("answer", "warns"),
    [
        pytest.param(status(403, "Forbidden", "no"), True, id="no right"),
        pytest.param(status(404, "NotFound", "no"), False, id="no namespace"),
    ],
)
def test_where_it_can_not_be_kept_the_nodes_are_released_all_the_same(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], answer: Answer, warns: bool
) -> None:
    def refused(asked: Asked) -> Answer | None:
        if asked.method in ("PATCH", "POST") and "/configmaps" in asked.path:
            return answer
        return type(cluster).instead(cluster, asked)

    cluster.instead, cluster.ledger = refused, None  # type: ignore[method-assign]
    capsys.readouterr()

    assert cluster.run("release", "--all") == 0
    said = capsys.readouterr().err
    assert cluster.said("a", HOLD) is None
    assert ("warning: who released all nodes is not kept (" in said) is warns
