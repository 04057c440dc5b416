"""Scenarios judge the program from outside, and their result has its place on the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nodes import session, workloads
from tests.nodes.cluster import Cluster
from tests.nodes.scenarios import SCENARIOS
from tests.nodes.session import MARKS, RESULT, Row, table, written

FOLDER = Path(__file__).parent


@pytest.mark.heavy
def test_what_judges_imports_nothing_of_the_program() -> None:
    files = [path for path in FOLDER.rglob("*.py") if not path.name.startswith("test_")]
    modules = [".".join(path.relative_to(FOLDER.parents[1]).with_suffix("").parts) for path in files]
    script = (
        f"import importlib, json, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    loaded = set(json.loads(done.stdout))
    assert "tests" in loaded
    assert not loaded & {"reconciler", "jobs"}


def test_each_scenario_is_played_under_the_name_of_its_module() -> None:
    modules = {path.stem for path in (FOLDER / "scenarios").glob("*.py")} - {"__init__"}

    assert set(SCENARIOS) == modules
    for name, play in SCENARIOS.items():
        assert play.__module__ == f"tests.nodes.scenarios.{name}"


def test_a_failure_is_seen_in_the_table() -> None:
    lines = table([Row("one", 1.4, passed=True, seen="fine"), Row("other", 2, passed=False, seen="no Pod")])

    assert lines.splitlines()[1:] == ["one          1  fine", "other        2  FAILED: no Pod"]


def test_the_reason_of_a_failure_is_what_failed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(_: Cluster) -> str:
        try:
            raise AssertionError("two Pods db-0 lived at once")
        finally:
            raise TimeoutError("still no end of Pods after 150 s")

    monkeypatch.setattr(session, "SCENARIOS", {"play": play})

    row = session.played(Cluster.__new__(Cluster), "play")

    assert (row.passed, row.seen) == (False, "AssertionError: two Pods db-0 lived at once")


def test_the_result_is_written_between_the_marks_alone() -> None:
    page = RESULT.read_text(encoding="utf-8")

    changed = written(page, "Today, Kubernetes v1", [Row("one", 3.6, passed=True, seen="fine")])

    begin, end = (page.index(mark) for mark in MARKS)
    assert changed.startswith(page[:begin])
    assert changed.endswith(page[end:])
    assert "| one | 4 | fine |" in changed
    assert written(changed, "Today, Kubernetes v1", [Row("one", 3.6, passed=True, seen="fine")]) == changed


def test_the_life_of_a_pod_is_read_from_its_own_words(tmp_path: Path) -> None:
    lines = ("100.00 start np-1 web-1", "100.10 alive", "101.00 sigterm", "101.50 alive", "102.00 end")
    (tmp_path / "default.web-1.uid").write_text("\n".join(lines) + "\n", encoding="utf-8")

    (life,) = workloads.read_records(tmp_path)

    assert (life.namespace, life.pod, life.uid, life.node) == ("default", "web-1", "uid", "np-1")
    assert life.sigterm is not None
    assert life.end is not None
    assert round(life.sigterm - life.start, 2) == 1.0
    assert round(life.end - life.sigterm, 2) == 1.0
