"""docs/holds.md has each check and each other hold: what it means, a line that is printed, and the remedy."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from reconciler.model.keys import OwnKeys
from reconciler.report.explain import who_ends
from reconciler.report.kinds import hold_kinds
from reconciler.report.standing import ends_by_itself
from tests.docs.holds import example

FILE = Path(__file__).parents[2] / "docs" / "holds.md"
ENTRY = r"^### {}\n\n([^\n]+)\n\n```text\n(.*?)```$"


def entry(code: str) -> tuple[str, str]:
    """What the page says of the code, and its example."""
    match = re.search(ENTRY.format(code), FILE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1], match[2]


def test_each_check_and_each_other_hold_has_one_entry() -> None:
    headings = re.findall(r"^### (\w+)$", FILE.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(headings) == sorted(hold_kinds())


@pytest.mark.parametrize("code", sorted(hold_kinds()))
def test_its_example_and_its_remedy_are_those_of_the_program(code: str) -> None:
    meaning, quoted = entry(code)
    if os.environ.get("GOLDEN") == "write" and quoted != example(code):
        page = FILE.read_text(encoding="utf-8")
        filled = f"### {code}\n\n{meaning}\n\n```text\n{example(code)}```"
        FILE.write_text(
            re.sub(ENTRY.format(code), lambda _: filled, page, flags=re.M | re.S), encoding="utf-8"
        )

    assert entry(code)[1] == example(code)


@pytest.mark.parametrize("code", sorted(code for code, kind in hold_kinds().items() if kind.who))
def test_its_remedy_has_a_command_or_a_setting_unless_it_ends_by_itself(code: str) -> None:
    assert "`" in who_ends(code, "NODE", OwnKeys()) or ends_by_itself(code)
