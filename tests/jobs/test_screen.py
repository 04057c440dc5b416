"""What a terminal is given: colours where it wants them, blocks where it can show them."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from jobs.runtime.looks import echo_lines, screen
from reconciler.report.lines import ASCII, BLOCKS, Line

LINES = (Line("fine"), Line("late\x1b[2J", alarm=True))


class Terminal:
    """A pseudo terminal as stdout."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.stdout: TextIO = open(slave, "w", encoding=encoding)  # noqa: SIM115 - close ends it

    def shown(self, lines: int) -> str:
        """What has been printed, once it has so many lines."""
        self.stdout.flush()
        found = ""
        while found.count("\n") < lines:
            found += os.read(self._master, 10_000).decode()
        return found

    def close(self) -> None:
        self.stdout.close()
        os.close(self._master)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """The terminal of a person who has set nothing; each test makes it its stdout."""
    for name in ("NO_COLOR", "TERM", "LC_ALL", "LC_CTYPE", "LANG", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    made = Terminal()
    yield made
    made.close()


def test_on_a_terminal_an_alarm_is_red_and_text_from_outside_controls_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest sets stdout before each test, so a fixture can't.
    monkeypatch.setattr(sys, "stdout", terminal.stdout)
    echo_lines(LINES)

    assert terminal.shown(2) == "fine\r\n\x1b[31mlate\\x1b[2J\x1b[0m\r\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_gets_none(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal.stdout)
    echo_lines(LINES)

    assert terminal.shown(2) == "fine\r\nlate\\x1b[2J\r\n"


def test_a_pipe_gets_no_colours_and_all_lines(capsys: pytest.CaptureFixture[str]) -> None:
    echo_lines(LINES)

    assert capsys.readouterr().out == "fine\nlate\\x1b[2J\n"
    assert screen().lines is None


def test_the_lines_of_a_terminal_are_limited_but_for_the_prompt_and_for_everything(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "__stdout__", terminal.stdout)
    monkeypatch.setattr(sys, "stdout", terminal.stdout)

    assert (screen().columns, screen().lines) == (100, 29)
    assert screen(everything=True).lines is None


@pytest.mark.parametrize(
    ("given", "blocks"),
    [
        ({}, True),
        ({"LANG": "en_US.UTF-8"}, True),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, True),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, False),
        ({"LANG": "POSIX", "LC_CTYPE": "C.UTF-8"}, False),
    ],
)
def test_a_locale_that_can_not_show_blocks_gets_ascii(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], blocks: bool
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal.stdout)

    assert screen().signs == (BLOCKS if blocks else ASCII)


def test_an_encoding_without_blocks_gets_ascii_and_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = Terminal("ascii")
    monkeypatch.setattr(sys, "stdout", narrow.stdout)
    echo_lines([Line("“sale”")])

    assert narrow.shown(1) == "\\u201csale\\u201d\r\n"
    assert screen().signs == ASCII
    monkeypatch.undo()
    narrow.close()
