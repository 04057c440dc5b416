"""A case that is played on the real API server writes its line, also if a process is killed in between."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.support.fakes.proxy import Cut, Proxy

Object = dict[str, Any]


def lines(path: Path) -> list[Object]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def summed(path: Path, capsys: pytest.CaptureFixture[str]) -> Object:
    """The sum of the file, as `reconciler history` prints it."""
    assert main(["history", str(path), "--output", "json"]) == 0
    found: Object = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_beside_the_uncordon_the_case_is_in_the_file_and_counts_once(
    scene: Scene, programs: Programs, tmp_path: Path, capsys: pytest.CaptureFixture[str], before: bool
) -> None:
    programs.configure(ENFORCE)
    file = tmp_path / "history.jsonl"
    node = scene.node()
    scene.workload("web", node)
    scene.condition_tells(node)
    assert programs.sweep().code == 0
    scene.condition_silent(node)

    killed = cut_sweep(programs, tmp_path, file, before)
    assert any(re.fullmatch("PATCH .*/nodes/.*", one.split("?")[0]) for one in killed)
    assert len(lines(file)) == 1
    assert scene.is_untouched(node) is not before
    scene.shorten_lock()
    assert programs.sweep("--history", str(file)).code == 0

    assert scene.is_untouched(node)
    assert len(lines(file)) == (2 if before else 1)
    document = summed(file, capsys)
    assert document["total"]["cases"] == 1
    assert document["lines"]["repeated"] == (1 if before else 0)


def cut_sweep(programs: Programs, folder: Path, file: Path, before: bool) -> list[str]:
    """Run a sweep that is killed at its first write of a node; the writes that it tried."""
    with Proxy(programs.kubeconfig, Cut(2, before)) as proxy:
        kubeconfig = proxy.write_kubeconfig(folder / "cut.kubeconfig")
        process = programs.start("sweep", "--history", str(file), kubeconfig=kubeconfig)
        proxy.ends(process.kill)
        assert process.wait().code == -9
    return proxy.writes
