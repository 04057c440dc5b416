"""`-l` of kubectl: a command is about the nodes with these labels. `-o wide` has a row for each pod."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from tests.support.builders import RECORD, REQUEST
from tests.support.stub import Answer, Asked, Stub, json_answer, status

NODES = "/api/v1/nodes"
SHELVES = {"a": "left", "b": "right", "c": "left"}
"""Each node's label `shelf`, which no settings name."""


POD = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "web"},
    "spec": {"nodeName": "a"},
    "status": {"phase": "Running"},
}


def node(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    labels = {"shelf": SHELVES[name]}
    metadata = {"name": name, "uid": name, "resourceVersion": "7"}
    return {
        "kind": "Node",
        "metadata": {**metadata, "labels": labels, "annotations": annotations},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.fixture
def given() -> dict[str, str]:
    """What each node has: a request for maintenance."""
    return {REQUEST: '{"kind":"Reboot"}'}


@pytest.fixture
def stub(given: dict[str, str]) -> Iterator[Stub]:
    """A server with three nodes."""

    def answer(asked: Asked) -> Answer:
        if asked.path in (NODES, "/api/v1/pods"):
            items = [node(name, given) for name in SHELVES] if asked.path == NODES else [POD]
            kind = "NodeList" if asked.path == NODES else "PodList"
            return json_answer({"kind": kind, "metadata": {"resourceVersion": "1"}, "items": items})
        if asked.method == "PATCH":
            return json_answer(node(asked.path.rpartition("/")[2], given))
        return status(403, "Forbidden", "no")

    made = Stub(answer)
    yield made
    made.close()


@pytest.fixture
def cluster(stub: Stub, tmp_path: Path) -> list[str]:
    return ["--kubeconfig", str(stub.write_kubeconfig(tmp_path / "kubeconfig"))]


def test_report_has_the_rows_of_these_nodes(cluster: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-l", "shelf in (left)", "-o", "json", *cluster]) == 0

    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["nodes"]] == ["a", "c"]
    assert (document["filter"]["selector"], document["filter"]["shown"], document["filter"]["of"]) == (
        "shelf=left",
        2,
        3,
    )

    assert main(["report", "-l", "shelf=right", *cluster]) == 0
    assert "rows: 1 of 3 shown (nodes with shelf=right)" in capsys.readouterr().out


@pytest.mark.parametrize(("output", "rows"), [("text", 0), ("wide", 1)])
def test_a_wide_report_has_a_row_for_each_pod(
    output: str, rows: int, cluster: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "-o", output, *cluster]) == 0

    assert capsys.readouterr().out.count("  pod       shop/web: ") == rows


def test_plan_has_the_cases_of_these_nodes_and_says_so(
    cluster: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "-l", "shelf!=left", "-o", "json", *cluster]) == 0

    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["cases"]] == ["b"]
    assert "only nodes with shelf notin (left) are shown" in document["notes"]


def test_request_is_written_on_these_nodes_only(cluster: list[str], stub: Stub) -> None:
    assert main(["request", "-l", "shelf=left", "--cancel", *cluster]) == 0

    assert [one.path for one in stub.asked if one.method == "PATCH"] == [f"{NODES}/a", f"{NODES}/c"]


def test_release_is_about_these_nodes_only(
    cluster: list[str], given: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    # Each node that is asked for is refused by name.
    given[RECORD] = "no record"
    assert main(["release", "-l", "shelf=left", *cluster]) == 1

    refused = capsys.readouterr().err.splitlines()[1:]
    assert [line.partition(":")[0] for line in refused] == ["a", "c"]


@pytest.mark.parametrize(
    "arguments", [("report",), ("plan",), ("request", "--cancel"), ("release",), ("hold",), ("drain",)]
)
def test_a_selector_that_no_node_matches_is_an_error(
    arguments: tuple[str, ...], cluster: list[str], stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "-l", "shelf=top", *cluster]) == 1

    assert "no node" in capsys.readouterr().err
    assert {one.method for one in stub.asked} == {"GET"}
