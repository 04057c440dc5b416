"""`reconciler plan` on a cluster of which nodes and pods alone can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jobs.cli import main
from tests.features.planning.server import serving
from tests.support.stub import Stub


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A server with no nodes, at which we may list nodes and pods only."""
    with closing(serving()) as made:
        yield made


@pytest.fixture
def arguments(stub: Stub, tmp_path: Path) -> list[str]:
    """The command with settings and a cluster."""
    config = tmp_path / "maintenance.yaml"
    config.write_text('windows: [{name: always, start: "00:00", end: "24:00"}]', encoding="utf-8")
    return [
        "plan",
        "--config",
        str(config),
        "--kubeconfig",
        str(stub.write_kubeconfig(tmp_path / "kubeconfig")),
    ]


def test_without_a_case_it_says_so_and_what_it_could_not_see(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0

    shown = " ".join(capsys.readouterr().out.split())
    assert "No case: nothing is planned to start. window always is open" in shown
    assert "(needs get configmaps in kube-system)" in shown


def test_the_document_covers_the_time_that_was_asked_for(
    arguments: list[str], stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--until", "1d", "--output", "json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["cases"] == []
    assert document["at"][:10] < document["until"][:10]
    assert {one["needs"] for one in document["unseen"]} >= {"get configmaps in node-maintenance"}
    assert {one.method for one in stub.asked} == {"GET"}
