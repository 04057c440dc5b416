"""`reconciler plan` of some nodes: by their names, by the end of one, by pool and by labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jobs.cli import main
from tests.features.planning.server import serving
from tests.support.builders import DRAIN_NOW, REQUEST
from tests.support.stub import Stub

POOLS = {"aks-np-vmss000000": "np", "aks-np-vmss000001": "np", "aks-gpu-vmss000001": "gpu"}


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A server with these nodes; each is requested to be drained."""
    nodes = [
        {
            "metadata": {
                "name": name,
                "uid": name,
                "resourceVersion": "1",
                "labels": {"agentpool": pool, "disk": "big" if name.endswith("1") else "small"},
                "annotations": {REQUEST: DRAIN_NOW},
            },
            "spec": {},
            "status": {},
        }
        for name, pool in POOLS.items()
    ]
    with closing(serving(nodes)) as made:
        yield made


@pytest.fixture
def arguments(stub: Stub, tmp_path: Path) -> list[str]:
    config = tmp_path / "maintenance.yaml"
    config.write_text("mode: Enforce\n", encoding="utf-8")
    kubeconfig = stub.write_kubeconfig(tmp_path / "kubeconfig")
    return ["plan", "-o", "json", "--config", str(config), "--kubeconfig", str(kubeconfig)]


@pytest.mark.parametrize(
    ("options", "nodes", "said"),
    [
        (["000000"], ["aks-np-vmss000000"], "only nodes named aks-np-vmss000000 are shown"),
        (
            ["--pool", "np"],
            ["aks-np-vmss000000", "aks-np-vmss000001"],
            "only nodes of the pool 'np' are shown",
        ),
        (
            ["--pool", "np", "-l", "disk=big"],
            ["aks-np-vmss000001"],
            "only nodes of the pool 'np' and nodes with disk=big are shown",
        ),
        ([], [*POOLS], ""),
    ],
)
def test_a_plan_shows_the_chosen_nodes_only(
    options: list[str], nodes: list[str], said: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, *options]) == 0

    document = json.loads(capsys.readouterr().out)
    assert sorted(case["name"] for case in document["cases"]) == sorted(nodes)
    assert [note for note in document["notes"] if "are shown" in note] == ([said] if said else [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["000001"], "did you mean one of these? aks-gpu-vmss000001, aks-np-vmss000001"),
        (["--pool", "none"], "no node matches nodes of the pool 'none'"),
    ],
)
def test_a_plan_of_no_node_is_an_error(
    options: list[str], said: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, *options]) == 1

    assert said in capsys.readouterr().err
