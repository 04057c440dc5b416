"""`reconciler explain` of a pod that a drain has moved, from what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jobs.runtime.log_line import log_line
from reconciler.features.pods import EVICTED, NAME, PUBLISHED
from reconciler.features.pods.kept import MOVED_PODS
from reconciler.features.pods.moved import MovedPod, to_fields
from reconciler.features.pods.published import Published, to_config_map
from reconciler.kubernetes.kept_lines import KeptLines, packed
from reconciler.model.drains import Refused
from reconciler.model.explanation import KnownMove, PodPast
from reconciler.model.values import replace
from reconciler.report.explained import Explanation, as_text
from tests.jobs.stub_cluster import StubCluster, node, pod
from tests.report.explaining import Explained
from tests.support.builders import NOW, minutes
from tests.support.stub import Answer, Asked, json_answer, status
from tests.support.worlds import world_of

OTHER = MovedPod(NOW, "shop/web-5c84-o", "uid-o", "n", "uid-n")
OLD = replace(
    OTHER,
    pod="shop/web-5c84-old",
    uid="uid-old",
    owner="ReplicaSet/web-5c84",
    case=NOW - minutes(60),
    why="Redeploy",
    refused=(Refused("PDB shop/web", 3),),
)


class Cluster(StubCluster):
    """`kept` is the data of the ConfigMap, None if it may not be read, and `told` what the namespace has."""

    kept: dict[str, str] | None = None
    told: dict[str, str] | None = None

    def instead(self, asked: Asked) -> Answer | None:
        if self.told is not None and asked.path == f"/api/v1/namespaces/shop/configmaps/{PUBLISHED}":
            return json_answer({"metadata": {"name": PUBLISHED}, "data": self.told})
        if not asked.path.endswith(f"/configmaps/{NAME}"):
            return None
        if self.kept is None:
            return status(403, "Forbidden", "no")
        return json_answer({"metadata": {"name": NAME, "resourceVersion": "1"}, "data": self.kept})


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path, node("n"), node("other"))) as made:
        made.pods.append(pod("shop", "web-5c84-new", "other"))
        yield made


def past(cluster: Cluster, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert cluster.run("explain", "shop/web-5c84-old", "-o", "json", *options) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["past"]
    return found


def test_a_pod_that_is_gone_says_how_it_was_moved_and_what_runs_instead(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.kept = packed(MOVED_PODS, KeptLines(NOW, (OLD, OTHER)))

    assert past(cluster, capsys)["moves"] == [to_fields(OLD)]
    assert cluster.run("explain", "shop/web-5c84-old") == 0
    rows = capsys.readouterr().out.splitlines()
    (moved,) = [row for row in rows if row.startswith("  moved     ")]
    assert (
        ": evicted from n: Redeploy; PDB shop/web had refused it 3 times (ReplicaSet/web-5c84); "
        "the case of its node began at "
    ) in moved
    assert "  instead   its owner runs shop/web-5c84-new on other" in rows
    assert not any("no Event says why" in row or "the log of the reconciler" in row for row in rows)


def test_a_file_answers_instead_of_the_cluster(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "history.jsonl"
    lines = [log_line(EVICTED, **to_fields(each)) for each in (OTHER, OLD)]
    file.write_text("\n".join([*lines, '{"event": "evicted", "pod": "shop/web-5c84-old"}']), encoding="utf-8")

    found = past(cluster, capsys, "--history", str(file))

    assert found["moves"] == [to_fields(OLD)]
    assert found["unread"] == ["1 line about the pod can't be read"]


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        (None, f"the ConfigMap node-maintenance/{NAME} could not be read: needs get configmaps"),
        ({"lines": "?"}, f"kubectl delete -n node-maintenance configmap {NAME}"),
    ],
    ids=["forbidden", "broken"],
)
def test_what_can_not_be_read_is_said_and_is_not_taken_for_nothing(
    kept: dict[str, str] | None, says: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.kept = kept

    assert says in past(cluster, capsys)["unread"][0]
    assert cluster.run("explain", "shop/nobody") == 1
    assert says in capsys.readouterr().err
    assert cluster.run("explain", "shop/web-5c84-new") == 0
    assert says not in capsys.readouterr().out


def test_where_what_is_kept_may_not_be_read_the_namespace_is_told(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.told = to_config_map(Published(NOW, NOW, ZoneInfo("UTC"), (OTHER, OLD)))

    found = past(cluster, capsys)

    assert (found["moves"], found["unread"]) == ([to_fields(OLD)], [])


def test_a_file_is_about_pods(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.run("explain", "n", "--history", "file") == 2
    assert "--history is about a pod" in capsys.readouterr().err


@pytest.mark.parametrize("width", [60, 80, 200])
def test_what_tenants_have_written_into_a_move_breaks_no_line(width: int) -> None:
    evil = KnownMove(NOW, f"evicted {'because ' * 30}\x1b[2J\n\r\u202e=1+1")
    past = PodPast("shop/web", moves=(evil,), unread=("\x1b]0;title\x07",))
    text = as_text(Explanation(Explained(world_of()).found.plan, None, past=past), width)

    assert max(map(len, text.splitlines())) <= width
    assert all(character == "\n" or character.isprintable() for character in text)
    assert text.count("  moved     ") == 1
