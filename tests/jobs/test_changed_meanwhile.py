"""A node that somebody changes between the read and the write of a command: it is decided again at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.model.instructions import PersonHold, Word, hold_text
from tests.jobs.stub_cluster import NODES, StubCluster, node
from tests.support.builders import NOW, PREFIX
from tests.support.stub import Answer, Asked

pytestmark = pytest.mark.heavy

THEIRS = f"{PREFIX}/ignore"
COMMANDS = {
    "hold": ("hold", "n"),
    "defer": ("defer", "n", "--until", "+4h"),
    "resume": ("resume", "n"),
    "request": ("request", "n", "--kind", "Reboot"),
    "drain": ("drain", "n"),
    "release": ("release", "n"),
}


class Cluster(StubCluster):
    """Somebody labels the node before the first patch arrives; how often it is patched."""

    patches = 0

    def instead(self, asked: Asked) -> Answer | None:
        if asked.method == "PATCH" and asked.path == f"{NODES}/n":
            self.patches += 1
            self.nodes["n"]["metadata"]["labels"][THEIRS] = "true"
        return None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path, node("n", agentpool="np"))) as made:
        yield made


@pytest.mark.parametrize("command", COMMANDS)
def test_a_node_that_is_changed_meanwhile_is_written_as_it_is_by_then(cluster: Cluster, command: str) -> None:
    cluster.annotations()[f"{PREFIX}/acknowledge"] = "x"
    if command == "resume":
        cluster.annotations()[f"{PREFIX}/hold"] = hold_text(PersonHold(Word("alice@laptop", NOW)))
    before = dict(cluster.annotations())

    cluster.run(*COMMANDS[command])

    assert cluster.patches == 2
    assert cluster.annotations() != before
    assert cluster.nodes["n"]["metadata"]["labels"][THEIRS] == "true"
