"""The completion in a shell, as a person sees it: keys are pressed, and the line grows."""

from __future__ import annotations

from pathlib import Path

from tests.support.programs import install
from tests.support.terminal import Terminal


def completes(shell: list[str], first: str, folder: Path) -> None:
    """Press the tab key in this shell; AssertionError if a word does not become whole.

    `first` is what a person writes into the shell's start file, for a program in `folder`.
    """
    environment = install(folder, "reconciler")
    # No shell shows this line as it is, so that it is not found in what was typed.
    ready = f"{first}\necho rea''dy\n"
    with Terminal(shell, environment) as terminal:
        terminal.type(ready)
        terminal.wait_for("ready")
        terminal.type("reconciler readin\t")
        terminal.wait_for("readiness")
        terminal.type("-o markd\t")
        terminal.wait_for("markdown")
