"""`reconciler release --all` deletes the NodeMaintenance objects, or says which it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.stub_cluster import StubCluster, node
from tests.support.stub import Answer, Asked, json_answer, status

OBJECTS = "/apis/node-maintenance.dev/v1alpha1/nodemaintenances"


class Cluster(StubCluster):
    """A node, and these objects. `refused` are the methods that the API server does not allow."""

    def __init__(self, folder: Path) -> None:
        """Serve two objects."""
        super().__init__(folder, node("n"))
        self.objects = {name: {"metadata": {"name": name}, "spec": {"nodeName": "n"}} for name in ("x", "y")}
        self.refused = ""

    def instead(self, asked: Asked) -> Answer | None:
        """The objects."""
        if not asked.path.startswith(OBJECTS):
            return None
        if asked.method == self.refused:
            return status(403, "Forbidden", "not allowed")
        if asked.method == "DELETE":
            return json_answer(self.objects.pop(asked.path.removeprefix(f"{OBJECTS}/")))
        return json_answer({"metadata": {}, "items": list(self.objects.values())})


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def test_all_objects_are_deleted_and_a_dry_run_counts_them(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("release", "--all", "--dry-run") == 0
    assert "NodeMaintenance objects: 2 would be deleted\n" in capsys.readouterr().out
    assert cluster.objects.keys() == {"x", "y"}

    assert cluster.run("release", "--all") == 0
    assert "NodeMaintenance objects: 2 deleted\n" in capsys.readouterr().out
    assert cluster.objects == {}


def test_the_release_of_one_node_leaves_all_objects(cluster: Cluster) -> None:
    assert cluster.run("release", "n") == 0
    assert cluster.objects.keys() == {"x", "y"}


@pytest.mark.parametrize(
    ("refused", "code", "said"),
    [
        pytest.param("GET", 0, "left: NodeMaintenance objects, if there are any: ", id="read"),
        pytest.param("DELETE", 1, "left: 2 NodeMaintenance objects: ", id="delete"),
    ],
)
def test_what_may_not_be_deleted_is_named(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], refused: str, code: int, said: str
) -> None:
    cluster.refused = refused

    assert cluster.run("release", "--all") == code
    assert said in capsys.readouterr().out
    assert cluster.objects.keys() == {"x", "y"}
