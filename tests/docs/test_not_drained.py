"""Each line that docs/not-drained.md quotes is what the program prints in that situation."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from jobs.cli import commands as PROGRAM  # noqa: N812 - it is a constant
from tests.docs.situations import SITUATIONS, refused_by_a_budget, report_of_a_fleet

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "not-drained.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
# By the heading, the lines of the first block below it.
QUOTED = {
    entry.partition("\n")[0]: entry.partition("```text\n")[2].partition("```")[0].splitlines()
    for entry in PAGE.split("\n### ")[1:]
}


def test_each_entry_of_the_page_quotes_a_situation() -> None:
    assert [heading for heading, lines in QUOTED.items() if not lines] == []
    assert QUOTED.keys() == SITUATIONS.keys()


@pytest.mark.parametrize("heading", QUOTED)
def test_each_line_is_what_the_program_prints(heading: str) -> None:
    printed = iter(SITUATIONS[heading]().text.splitlines())

    # In the order of the output; other lines may be between them.
    assert [line for line in QUOTED[heading] if line not in printed] == []


@pytest.mark.parametrize("heading", QUOTED)
def test_each_command_of_an_answer_can_be_typed(heading: str) -> None:
    commands = re.findall(
        r"^  do        (.+)$", SITUATIONS[heading]().text.replace("KIND", "Reboot"), re.MULTILINE
    )

    for program, *words in map(shlex.split, commands):
        assert program in ("kubectl", "reconciler")
        if program == "reconciler":
            command = PROGRAM.get_command(click.Context(PROGRAM), words[0])
            assert command is not None
            command.make_context(words[0], words[1:])


@pytest.mark.parametrize("heading", QUOTED)
def test_an_answer_is_about_six_lines_at_80_columns(heading: str) -> None:
    lines = SITUATIONS[heading]().text.splitlines()
    rows = [line for line in lines if line[:3] != "   "]

    assert heading == "A webhook refuses" or len(rows) <= 7
    assert heading == "A webhook refuses" or len(lines) <= 10


def test_the_page_about_plans_shows_the_report_that_the_program_prints() -> None:
    page = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    quoted = page.partition("## What is wrong?\n")[2].partition("```text\n")[2].partition("```")[0]

    assert quoted == report_of_a_fleet()


def test_the_readme_shows_what_the_program_prints() -> None:
    typed, *lines = README.partition("```text\n")[2].partition("```")[0].splitlines()
    printed = iter(refused_by_a_budget().text.splitlines())

    assert typed.startswith("$ reconciler explain ")
    assert lines
    assert [line for line in lines if line not in printed] == []
