"""docs/commands.md is what the options of the commands generate."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import reference

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    """The text below a heading of the page, up to the next one."""
    return PAGE.partition(f"\n{heading}\n")[2].partition("\n##")[0]


def test_the_page_is_what_the_commands_generate() -> None:
    assert reference.update(PAGE) == PAGE, "run `nox -s docs`"


def test_only_what_follows_the_marker_is_generated() -> None:
    page = reference.update(f"by hand\n{reference.MARKER}\nold\n")

    assert page.startswith(f"by hand\n{reference.MARKER}\n\n## Each command\n\n### `reconciler agent`\n")
    with pytest.raises(ValueError, match="no line"):
        reference.update("by hand\n")


def test_an_option_of_one_command_has_its_default() -> None:
    assert "- `--for DURATION`: How long drains may continue" in section("### `reconciler sweep`")
    assert "[default: 50s]" in section("### `reconciler sweep`")


def test_a_shared_option_is_described_once() -> None:
    assert PAGE.count("- `--pool TEXT`:") == 1
    assert "- `--pool TEXT`:" in section("## Shared options")


def test_options_in_sentences_are_code() -> None:
    assert "With `--watch`:" in section("## Shared options")
