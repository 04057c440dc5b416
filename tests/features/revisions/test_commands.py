"""`reconciler settings` with revisions that others have written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.features.revisions.revisions import Kept, to_text
from tests.features.revisions.cluster import GOOD, Cluster
from tests.jobs.stub_cluster import NODES
from tests.support.builders import NOW
from tests.support.stub import Answer, Asked, status

pytestmark = pytest.mark.heavy


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


def test_texts_that_describe_much_in_little_are_compared_as_far_as_a_list_has_time(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Kept()
    for number in range(100):
        kept = kept.with_text(b"a: %d #" % number + b"x" * 500_000, NOW, "", 1, 100)
    cluster.kept = to_text(kept)
    assert len(cluster.kept) < 100_000

    assert cluster.run("settings", "-o", "json") == 0
    changes = [each["changes"] for each in json.loads(capsys.readouterr().out)["revisions"]]
    assert changes[:2] == [["a changed"]] * 2
    assert changes[2:] == [None] * 98
    assert cluster.run("settings") == 0
    said = capsys.readouterr().out.splitlines()
    assert said.count("      what changed is not known; 1 node managed") == 97


def test_what_others_write_is_one_line_and_steers_no_terminal(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = "helm\nrefused: nothing\x1b[31m"
    cluster.kept = to_text(Kept().with_text(GOOD, NOW, forged, 1, 20))

    assert cluster.run("settings") == 0
    said = capsys.readouterr().out
    assert "by helm refused: nothing\\x1b[31m" in said
    assert "\nrefused: nothing" not in said


def test_where_only_the_nodes_can_be_read_a_rollback_says_so_and_is_done_all_the_same(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lists, plain = [], cluster.instead

    def once(asked: Asked) -> Answer | None:
        if asked.path == NODES:
            lists.append(asked)
        return status(401, "Unauthorized", "no") if asked.path == NODES and len(lists) > 1 else plain(asked)

    cluster.instead = once  # type: ignore[method-assign]

    assert cluster.run("settings", "rollback", "--yes", "-o", "json") == 0
    done = json.loads(capsys.readouterr().out)
    (warning,) = done["warnings"]
    assert warning.startswith("cases and misses are not compared: ")
    assert (done["written"], done["managed"], done["cases"]) == (True, None, None)
