"""`reconciler history` without a file: what the cluster keeps, and what is missing of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.features.history import NAME
from reconciler.features.history.kept import HISTORY, HistoryLine
from reconciler.kubernetes.kept_lines import KeptLines, packed
from reconciler.model.sayings import Deed, to_fields
from tests.jobs.stub_cluster import StubCluster
from tests.support.cases import ended
from tests.support.stub import Answer, Asked, json_answer, status

DEED = Deed(datetime.now(UTC).replace(microsecond=0), "held", "alice", True, "a")


class Cluster(StubCluster):
    """`kept` is the data of the ConfigMap, None if there is none, `refused` whether it may not be read."""

    kept: dict[str, str] | None = None
    refused = False

    def instead(self, asked: Asked) -> Answer | None:
        if not asked.path.endswith(f"/configmaps/{NAME}"):
            return None
        if self.refused:
            return status(403, "Forbidden", "no")
        if self.kept is None:
            return status(404, "NotFound", "no")
        return json_answer({"metadata": {"name": NAME, "resourceVersion": "1"}, "data": self.kept})


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


def test_it_has_cases_and_deeds_and_says_from_when_on_it_is_complete(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = DEED.at - timedelta(days=3)
    lines: tuple[HistoryLine, ...] = (ended("a"), DEED)
    cluster.kept = packed(HISTORY, KeptLines(whole, lines))

    assert cluster.run("history", "--audit", "-o", "json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["audit"] == [to_fields(DEED)]
    assert "is complete from" in said.err
    assert cluster.run("history", "--audit", "--since", "1d") == 0
    said = capsys.readouterr()
    assert ("held" in said.out, said.err) == (True, "")
    assert cluster.run("history", "--cases", "-o", "json") == 0
    assert [case["node"] for case in json.loads(capsys.readouterr().out)["cases"]] == ["a"]


def test_where_nothing_is_kept_it_says_why_that_may_be(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("history", "--audit") == 0
    said = capsys.readouterr()
    assert "nothing that a person did is in the history" in said.out
    assert "does not exist" in said.err
    assert "`audit.keep` is 0s" in said.err


def test_what_somebody_else_wrote_there_is_refused_with_the_command_that_ends_it(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.kept = {"lines": "?"}

    assert cluster.run("history") != 0
    assert f"kubectl delete -n node-maintenance configmap {NAME}" in " ".join(capsys.readouterr().err.split())


def test_who_may_not_read_it_is_told_so(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.refused = True

    assert cluster.run("history") == 1
    assert NAME in capsys.readouterr().err
