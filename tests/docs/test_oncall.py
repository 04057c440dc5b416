"""The page for the person on call: one screen with an answer to each question."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from jobs.cli import commands

PAGE = (Path(__file__).parents[2] / "docs" / "oncall.md").read_text(encoding="utf-8")


COMMANDS = re.findall(r"`(reconciler [a-z][^`]*)`", PAGE)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_program_takes_each_command(command: str) -> None:
    name, *arguments = shlex.split(command)[1:]
    parser = commands.get_command(click.Context(commands), name)

    assert parser is not None
    # Parses and converts every argument, and runs nothing.
    parser.make_context(name, arguments)


def test_it_is_one_screen() -> None:
    assert len(PAGE.splitlines()) <= 50


@pytest.mark.parametrize("question", ["Stop", "Start", "Why", "Who", "Undo:"])
def test_a_question_has_one_row_with_a_command(question: str) -> None:
    (row,) = re.findall(rf"^\| \*\*{question}\*\*.*$", PAGE, re.MULTILINE)

    assert re.search(r"\| `(reconciler|kubectl) [^`]+`", row)


@pytest.mark.parametrize("heading", ["The reconciler is dead", "The settings are wrong"])
def test_a_fault_of_the_program_has_commands_and_its_runbook(heading: str) -> None:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]

    assert "```sh\n" in section
    assert "](runbooks/NodeMaintenance" in section
