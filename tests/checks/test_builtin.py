"""The names by which profiles know the checks."""

from __future__ import annotations

from pathlib import Path

from reconciler.checks.builtin import CHECKS
from reconciler.triggers.builtin import TRIGGERS
from tests.builders import situation

ROOT = Path(__file__).parents[2]


def test_every_check_answers_by_its_own_name_with_a_reason_where_it_does_not_pass() -> None:
    for name, check in CHECKS.items():
        answer = check(situation())

        assert answer.name == name
        assert answer.reason or answer.verdict.value == "passed"


def test_every_plugin_has_a_file_and_a_test_of_its_own() -> None:
    for folder, plugins in (("checks", CHECKS), ("triggers", TRIGGERS)):
        for name in plugins:
            file = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)

            assert (ROOT / "reconciler" / folder / f"{file}.py").exists()
            assert (ROOT / "tests" / folder / f"test_{file}.py").exists()
