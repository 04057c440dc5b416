"""`reconciler request`: each node is reported, also where a write to one of them fails."""

from __future__ import annotations

import json
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
    assert operations["add", at[REQUEST]] == '{"kind": "Reboot"}'
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
    assert told.out.splitlines()[2:] == ["a: requested: Reboot", "c: requested: Reboot"]
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
    assert (code, told.out.splitlines()[2:]) == (1, ["a: requested: Reboot"])
    assert "c" not in cluster.tried
    assert told.err.splitlines()[-1] == "c: not written"
