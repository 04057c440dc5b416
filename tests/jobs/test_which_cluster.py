"""Each error of the API server names the server, and how it was chosen, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from tests.jobs.stub_cluster import OF_SETTINGS, StubCluster, node
from tests.support.stub import Answer, Asked, status

COMMANDS = {**OF_SETTINGS, "approve": ("approve", "n")}
ANSWERS = {
    "401": (status(401, "Unauthorized", "Unauthorized"), 3, "Sign in again, or name another context"),
    "403": (status(403, "Forbidden", "no"), 3, "The manifests in k8s/report give the rights"),
    "404 of a proxy": (Answer(b"<html>", 404, "text/html"), 3, "is no Kubernetes API server"),
}


class Cluster(StubCluster):
    """It answers everything in one way."""

    answer: Answer

    def instead(self, asked: Asked) -> Answer | None:
        return self.answer


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path, node("n"))) as made:
        yield made


# Where settings may not be read, `windows` goes on with the default settings, and says so.
CASES = [pair for pair in product(COMMANDS, ANSWERS) if pair != ("windows", "403")]


@pytest.mark.parametrize(("command", "answered"), CASES)
def test_an_error_names_the_server_the_context_and_what_to_do(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str, answered: str
) -> None:
    cluster.answer, exit_code, to_do = ANSWERS[answered]
    assert cluster.run(*COMMANDS[command]) == exit_code
    said = capsys.readouterr().err
    assert to_do in said
    assert f"{cluster.stub.url} (context " in said
    assert str(cluster.kubeconfig) in said
