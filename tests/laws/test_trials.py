"""What the run of the mutants calls killed: a rule whose test ran and failed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.laws.forking import Ended
from tests.laws.mutants import MUTANTS
from tests.laws.places import ROOT, DoesNotFit, Index
from tests.laws.trials import Verdict, baselines, copy_tree, files_of, judged


@pytest.mark.parametrize(
    ("ended", "removed", "untouched"),
    [
        pytest.param(Ended(1, 2, "a.py::test_b"), Verdict.KILLED, Verdict.BROKEN, id="a test failed"),
        pytest.param(Ended(0, 3), Verdict.SURVIVED, Verdict.PASSES, id="all passed"),
        pytest.param(Ended(0), Verdict.BROKEN, Verdict.BROKEN, id="all skipped"),
        pytest.param(Ended(2, 0, "a.py"), Verdict.BROKEN, Verdict.BROKEN, id="can't be loaded"),
        pytest.param(Ended(5), Verdict.BROKEN, Verdict.BROKEN, id="no test"),
        pytest.param(Ended(1), Verdict.BROKEN, Verdict.BROKEN, id="failed without a test"),
        pytest.param(Ended(-1), Verdict.BROKEN, Verdict.BROKEN, id="no answer"),
        pytest.param(Ended(None), Verdict.TIMED_OUT, Verdict.BROKEN, id="no end"),
    ],
)
def test_only_a_test_that_ran_and_failed_kills(ended: Ended, removed: Verdict, untouched: Verdict) -> None:
    assert judged(ended, removed=True)[0] is removed
    assert judged(ended, removed=False)[0] is untouched


def test_each_file_runs_once_with_nothing_removed_and_as_a_whole_where_a_rule_needs_it() -> None:
    asked = [("a.py::x",), ("a.py::y",), ("b.py::z",), ("b.py",), ("c.py", "d.py")]

    assert baselines(asked) == (("a.py::x", "a.py::y"), ("b.py",), ("c.py", "d.py"))


def test_a_copy_has_what_tests_read_and_nothing_that_was_built(tmp_path: Path) -> None:
    """A test that does not find its page fails with nothing removed, and proves nothing."""
    read = {"README.md", ".dockerignore", "docs/output.md", "jobs/cli.py", "tests/support/build/recipes.py"}
    built = {".git", ".venv/bin/python", "build/hostile.jsonl", "dist/a.whl", "jobs/__pycache__/cli.pyc"}
    for name in (*read, *built):
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).touch()
    copy_tree(tmp_path / "root", copy := tmp_path / "copy")

    assert {file.relative_to(copy).as_posix() for file in copy.rglob("*") if file.is_file()} == read


@pytest.mark.heavy
def test_each_rule_has_its_place_and_its_code_there_once() -> None:
    index, wrong = Index(), []
    for mutant in MUTANTS:
        try:
            for edit in mutant.edits:
                edit.found(index)
        except (DoesNotFit, SyntaxError) as error:
            wrong.append(f"{mutant.rule}: {error}")

    assert wrong == []


def test_each_rule_has_tests() -> None:
    assert [one.rule for one in MUTANTS if not files_of(one)] == []
    named = sorted({name.partition("::") for one in MUTANTS for name in files_of(one)})
    assert [file for file, _, _ in named if not (ROOT / file).is_file()] == []
    tests = {file: (ROOT / file).read_text(encoding="utf-8") for file, _, test in named if test}
    assert [test for file, _, test in named if test and f"\ndef {test}(" not in tests[file]] == []


def test_no_two_rules_of_a_place_have_one_name() -> None:
    names = [(one.rule, one.edits[0].place) for one in MUTANTS]

    assert len(names) == len(set(names))
