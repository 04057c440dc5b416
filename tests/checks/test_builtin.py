"""The names by which profiles know the checks."""

from __future__ import annotations

from pathlib import Path

from reconciler.checks.builtin import CHECKS
from reconciler.triggers.builtin import TRIGGERS
from tests.support.builders import situation

ROOT = Path(__file__).parents[2]


def test_every_check_answers_by_its_own_name_with_a_reason_where_it_does_not_pass() -> None:
    for name, check in CHECKS.items():
        answer = check(situation())

        assert answer.name == name
        assert answer.reason or answer.verdict.value == "passed"


def test_every_plugin_has_a_file_and_a_test_of_its_own() -> None:
    for folder, plugins in (("checks", CHECKS), ("triggers", TRIGGERS)):
        files = {plugin.__module__ for plugin in plugins.values()}

        assert len(files) == len(plugins)
        for file in files:
            assert file.startswith(f"reconciler.{folder}.")
            assert (ROOT / "tests" / folder / f"test_{file.rpartition('.')[2]}.py").exists()
