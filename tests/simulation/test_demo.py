"""The demo: its seven stories happen in order, it prints them, it ends well, and always in the same words."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from jobs.commands.demo import run

pytestmark = pytest.mark.heavy

GOLDEN = Path(__file__).parent / "demo.txt"
# What a stranger has to find, in this order; each line is of one story.
STORY = (
    "ignores   aks-web-31415926-vmss000001    Freeze is ignored: 5s is below minDuration 10s",
    "announces: LiveMigration, not before 09:45",
    "so it starts at 09:35 at the earliest",
    "09:35:00  acts      aks-chat-31415926-vmss000001   cordons and drains",
    "drained it",
    "09:45:00  Azure     aks-chat-31415926-vmss000001   begins: LiveMigration",
    "09:52:00  acts      aks-chat-31415926-vmss000001   uncordons",
    "announces: Redeploy, not before 12:00",
    "the deadline 11:45 is reached, though no maintenance window is open",
    "12:12:00  acts      aks-web-31415926-vmss000003    uncordons",
    "cancels: Reboot",
    "stops the drain",
    "12:33:10  acts      aks-chat-31415926-vmss000002   uncordons",
    "announces: Preempt, not before 14:20:30",
    "cordons and drains: Preempt is drained at once",
    "evicts the VM",
    "announces: Reboot, not before 23:20",
    "waits for night, which opens at 22:00, before the deadline 23:05",
    "16:00:00  warns     aks-spot-31415926-vmss000005   at Wed 2026-12-02 20:15",
    "waits for PDB shop/ledger: needs 1 healthy, has 1",
    "someone   scales shop/ledger to 2",
    "drained it in 7m28s",
    "19:00:00  Azure     aks-spot-31415926-vmss000000   cancels: Reboot",
    "20:15:00  acts      aks-spot-31415926-vmss000005   cordons and drains: the deadline 20:15 is reached",
    "22:05:00  acts      aks-web-31415926-vmss000002    cordons and drains: window night is open",
    "23:35:00  acts      aks-web-31415926-vmss000005    cordons and drains: window night is open",
    "The report at midnight",
    "out of service: 1 of at most 2",
    "12: 2 Freeze, 1 LiveMigration, 2 Redeploy, 6 Reboot, 1 Preempt; 2 cancelled",
    "never exceeded",
)


@pytest.fixture(scope="module")
def played() -> tuple[int, str]:
    """One run as into a pipe, for all tests that read it: its exit code and output."""
    out = StringIO()
    console = Console(file=out, highlight=False, soft_wrap=True, emoji=False, markup=False, width=80)
    return run(console), out.getvalue()


def test_every_story_happens_and_is_printed_in_order(played: tuple[int, str]) -> None:
    code, text = played

    assert code == 0
    position = 0
    for words in STORY:
        found = text.find(words, position)
        assert found >= 0, f"{words!r} does not come (any more) at this point of the story"
        position = found + len(words)


def test_into_a_pipe_it_writes_plain_text_without_colours(played: tuple[int, str]) -> None:
    assert "\x1b" not in played[1]


def test_a_terminal_gets_colours_and_no_line_that_is_longer_than_it() -> None:
    columns, out = 60, StringIO()
    terminal = Console(file=out, force_terminal=True, color_system="standard", soft_wrap=True, width=columns)
    assert run(terminal) == 0

    assert "\x1b[33mwaits" in out.getvalue()
    text = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    assert [line for line in text.splitlines() if len(line) > columns] == []
    # Nothing is lost: the same words come in the same order.
    assert "".join(text.split()) == "".join(GOLDEN.read_text(encoding="utf-8").split())


def test_a_run_is_the_same_as_the_one_that_was_written_down(played: tuple[int, str]) -> None:
    """After a change that is meant: `reconciler demo > tests/simulation/demo.txt`; the diff is the review."""
    assert played[1] == GOLDEN.read_text(encoding="utf-8")
