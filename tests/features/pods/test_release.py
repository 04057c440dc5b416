"""`reconciler release --all` deletes what namespaces were told of their pods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.pods import NAME, PUBLISHED
from reconciler.features.pods.kept import MOVED_PODS
from reconciler.features.pods.publisher import OF
from reconciler.kubernetes.kept_lines import KeptLines, packed
from tests.jobs.stub_cluster import StubCluster, node
from tests.support.builders import NOW
from tests.support.stub import Answer, Asked, json_answer, status

OWN = "node-maintenance"


class Cluster(StubCluster):
    """Namespaces are told of their pods; that in `taken` is not ours."""

    def __init__(self, folder: Path) -> None:
        """Serve the record, and the ConfigMaps that it names but one."""
        super().__init__(folder, node("n"))
        kept = packed(MOVED_PODS, KeptLines(NOW, (), "gone shop taken"))
        self.maps: dict[tuple[str, str], dict[str, Any]] = {
            (OWN, NAME): {"metadata": {"name": NAME}, "data": kept},
            ("shop", PUBLISHED): {"metadata": {"name": PUBLISHED, "uid": "u", "labels": {OF: OWN}}},
            ("taken", PUBLISHED): {"metadata": {"name": PUBLISHED, "uid": "u"}},
        }

    def instead(self, asked: Asked) -> Answer | None:
        """The ConfigMaps."""
        parts = asked.path.split("/")
        if len(parts) < 7 or parts[6] not in (NAME, PUBLISHED):
            return None
        key = parts[4], parts[6]
        if key not in self.maps:
            return status(404, "NotFound", "no")
        return json_answer(self.maps.pop(key) if asked.method == "DELETE" else self.maps[key])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


def test_all_are_deleted_but_those_that_are_not_ours(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("release", "--all", "--dry-run") == 0
    assert f"ConfigMaps {PUBLISHED}: 3 would be deleted\n" in capsys.readouterr().out
    assert ("shop", PUBLISHED) in cluster.maps

    assert cluster.run("release", "--all") == 0
    assert f"ConfigMaps {PUBLISHED}: 3 deleted\n" in capsys.readouterr().out
    assert cluster.maps.keys() == {(OWN, NAME), ("taken", PUBLISHED)}


def test_a_record_that_can_not_be_read_is_said(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.maps[OWN, NAME]["data"] = {"lines": "?"}

    cluster.run("release", "--all")

    assert f"left: ConfigMaps {PUBLISHED}, if there are any: " in capsys.readouterr().out
