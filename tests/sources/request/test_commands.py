"""`reconciler request`: each node is reported, also where a write to one of them fails."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.by_hand import AGAIN
from tests.jobs.stub_cluster import StubCluster, node
from tests.support.builders import PREFIX, REQUEST, UID
from tests.support.stub import Answer, Asked, status


class Cluster(StubCluster):
    """Three nodes, the patches that were tried, and how the server answers them (None: it accepts)."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, *map(node, "abc"))
        self.patches: list[tuple[str, list[dict[str, Any]]]] = []
        self.refuse: Callable[[str], Answer | None] = lambda _: None

    def ask(self, *arguments: str) -> int:
        return self.run("request", "a", "b", "c", *arguments)

    @property
    def tried(self) -> list[str]:
        return [name for name, _ in self.patches]

    def instead(self, asked: Asked) -> Answer | None:
        if asked.method != "PATCH":
            return None
        name = asked.path.rpartition("/")[2]
        self.patches.append((name, json.loads(asked.body)))
        refusal = self.refuse(name)
        if refusal is not None:
            # Somebody was faster.
            self.annotations(name)[REQUEST] = '{"kind":"Redeploy"}'
        return refusal


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


def test_each_node_is_written_as_it_was_read(cluster: Cluster) -> None:
    assert cluster.ask("--kind", "Reboot") == 0
    assert cluster.tried == ["a", "b", "c"]
    operations = {(one["op"], one["path"]): one.get("value") for one in cluster.patches[0][1]}
    at = {key: f"/metadata/annotations/{key.replace('/', '~1')}" for key in (REQUEST, UID)}
    assert operations["test", "/metadata/uid"] == "uid-a"
    assert operations["test", at[REQUEST]] is None
    written = json.loads(str(operations["add", at[REQUEST]]))
    assert (written.keys(), written["kind"]) == ({"kind", "by", "at"}, "Reboot")
    assert "@" in written["by"]
    assert operations["add", at[UID]] == "uid-a"
    assert {path for kind, path in operations if kind != "test"} == set(at.values())


def test_a_node_that_somebody_changed_is_not_written_and_the_others_are(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refuse = lambda name: status(409, "Conflict", "changed") if name == "b" else None

    code = cluster.ask("--kind", "Reboot")

    told = capsys.readouterr()
    assert code == 1
    assert cluster.tried == ["a", "b", "c"]
    assert [line.partition(", by ")[0] for line in told.out.splitlines()[2:4]] == [
        "a: requested: Reboot",
        "c: requested: Reboot",
    ]
    # It has been read again, and another request is there by now.
    assert told.err.startswith("b: it has another request: Redeploy; --replace overwrites it")


def test_a_node_that_somebody_changes_all_the_time_is_not_written(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(name: str) -> Answer | None:
        cluster.annotations(name)[f"{PREFIX}/hold"] = f"{len(cluster.patches)}"
        return status(409, "Conflict", "changed")

    cluster.refuse = change

    assert cluster.run("request", "a", "--kind", "Reboot", "--replace") == 1
    assert cluster.tried == ["a"] * (1 + AGAIN)
    told = capsys.readouterr().err
    assert "a: not written: node a is not as it was seen: someone changed the keys of" in told
    assert told.endswith("; run the command again\n")


def test_after_a_refusal_of_the_credentials_no_other_node_is_tried(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refuse = lambda name: status(401, "Unauthorized", "no") if name == "b" else None

    code = cluster.ask("--kind", "Reboot")

    told = capsys.readouterr()
    assert (code, told.out.splitlines()[2].partition(", by ")[0]) == (1, "a: requested: Reboot")
    assert "c" not in cluster.tried
    assert told.err.splitlines()[-1] == "c: not written"


def test_a_request_says_what_follows_from_it_and_its_removal_whose_it_was(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("request", "a", "--kind", "Reboot", "--not-before", "4h", "--reason", "disk") == 0
    out = capsys.readouterr().out
    assert re.search(r"\na: requested: Reboot, not before .*, “disk”, by \S+@\S+ \(unverified\) at ", out)
    assert "\nIn mode Observe, no drain of a starts for the request.\n" in out
    remove = "To remove the request: reconciler request a --cancel"
    assert f"\nHolds, windows, freezes and the budget apply. {remove}\n" in out

    assert cluster.run("request", "a", "--cancel") == 0
    out = capsys.readouterr().out
    assert re.search(r"\na: request removed: Reboot, .* by \S+@\S+ \(unverified\) at ", out)
    assert "\nA drain of a for the request stops, and a pass uncordons what it cordoned for it.\n" in out

    assert cluster.run("request", "a", "--cancel") == 0
    assert "A drain of a" not in capsys.readouterr().out


def test_a_request_of_an_enforcing_reconciler_says_until_when_the_node_is_drained(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = tmp_path / "maintenance.yaml"
    settings.write_text("mode: Enforce\n")
    cluster.ask("--kind", "Reboot", "--not-before", "4h", "--config", str(settings))

    out = capsys.readouterr().out
    assert re.search(
        r"\nThe reconciler drains these nodes before .* \(in 4h\), and keeps the cordon until ", out
    )
    assert "reconciler request a b c --cancel\n" in out
