"""`-w`: a command prints again what has changed, in place on a terminal, also after errors."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, TextIO

import click
import pytest

from jobs.cli import main
from jobs.commands import COMMANDS, load
from jobs.runtime import looks as looks_module
from jobs.runtime.looks import Shown, echo_lines, is_unchanged, print_again_and_again, screen
from reconciler.model.errors import NotFound, SettingsError, Unreachable
from reconciler.report.lines import ASCII, BLOCKS, Line
from tests.support.builders import REQUEST
from tests.support.stub import Answer, Asked, Stub, json_answer, status
from tests.support.terminal import ROOT, Terminal, install

EVERY = timedelta(seconds=10)
CLEARED = "\x1b[H\x1b[2J"


class Over(Exception):
    """All looks are done."""


def one_after_another(looks: Iterable[Shown | Exception]) -> Callable[[], Shown]:
    """A look that returns or raises the next of these each time, and Over at the end."""
    left = iter(looks)

    def look() -> Shown:
        found = next(left, Over())
        if isinstance(found, Exception):
            raise found
        return found

    return look


def watched(*looks: Shown | Exception, spent: float = 0.0) -> list[float]:
    """Watch these looks, each of which takes so many seconds; return the pauses."""
    pauses: list[float] = []
    time = iter(range(1000))
    with pytest.raises(Over):
        print_again_and_again(
            one_after_another(looks), EVERY, sleep=pauses.append, clock=lambda: next(time) * spent
        )
    return pauses


def text(words: str, output: str = "text") -> Shown:
    return Shown(f"{words}\n", output, found(words))


def found(words: str) -> dict[str, Any]:
    """A document that says this."""
    return {"at": "2026-11-21T03:04:05Z", "settings": None, "words": words}


@pytest.mark.parametrize(
    ("output", "between"),
    [("text", "\n"), ("wide", "\n"), ("markdown", "\n"), ("yaml", "---\n"), ("json", "")],
)
def test_only_a_change_is_printed_again_where_there_is_no_terminal(
    output: str, between: str, capsys: pytest.CaptureFixture[str]
) -> None:
    watched(*(text(words, output) for words in ("a", "a", "b", "b", "a")))

    assert capsys.readouterr().out == f"a\n{between}b\n{between}a\n"


def test_moments_that_move_with_time_are_no_change(capsys: pytest.CaptureFixture[str]) -> None:
    def look(at: str, starts: str) -> Shown:
        return Shown(f"{starts}\n", "text", {**found(""), "at": at, "starts": starts})

    first, second, third = (f"2026-11-21T12:00:{seconds}Z" for seconds in ("00", "10", "20"))
    watched(look(first, first), look(second, second), look(third, second))

    # Planned for now twice, and then for the moment of the second look.
    assert capsys.readouterr().out == f"{first}\n\n{second}\n"


def test_a_terminal_is_written_in_place_each_time_and_cut_where_it_ends(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("LINES", "5")

    watched(text("a"), text("a"), text("1\n2\n3\n4"), text("1\n2\n3\n4\n5"))

    frames = capsys.readouterr().out.split(CLEARED)
    whole, cut = "1\n2\n3\n4\n", "1\n2\n3\nand 2 more lines; a larger terminal shows them\n"
    assert frames == ["", "a\n", "a\n", whole, cut]


def test_lines_of_alarm_are_red_and_cut_as_a_text_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("LINES", "3")
    lines = (Line("a", alarm=True), Line("b"), Line("c"))

    watched(Shown(lines, "text", found("")))

    red = click.style("a", fg="red")
    assert capsys.readouterr().out == f"{CLEARED}{red}\nand 2 more lines; a larger terminal shows them\n"


def test_programs_get_each_change_on_a_terminal_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    watched(text("{}", "json"), text("{}", "json"))

    assert capsys.readouterr().out == "{}\n"


def test_an_error_of_the_first_look_ends_it() -> None:
    with pytest.raises(Unreachable):
        print_again_and_again(one_after_another([Unreachable("no connection")]), EVERY)


def test_later_errors_are_printed_and_the_next_look_comes(capsys: pytest.CaptureFixture[str]) -> None:
    pauses = watched(text("a"), Unreachable("no connection"), SettingsError(("1:1: no",)), text("b"))

    shown = capsys.readouterr()
    assert shown.out == "a\n\nb\n"
    assert shown.err == "no connection; the next look is in 10s\n1:1: no; the next look is in 10s\n"
    assert pauses == [10.0] * 4


def test_a_name_that_is_gone_ends_it() -> None:
    looks = one_after_another([text("a"), NotFound("a: there is no such node", status=404)])

    with pytest.raises(NotFound):
        print_again_and_again(looks, EVERY, sleep=lambda _: None)


def test_a_pause_is_longer_after_a_long_look() -> None:
    assert watched(text("a"), spent=2.0) == [10.0]
    assert watched(text("a"), spent=30.0) == [120.0]


@pytest.mark.heavy
def test_it_ends_without_a_word_once_nobody_reads_it() -> None:
    code = (
        "import sys; from datetime import timedelta; from itertools import count\n"
        "from jobs.runtime.looks import Shown, print_again_and_again\n"
        "number = count()\n"
        "def look():\n"
        "    document = {'at': '2026-11-21T03:04:05Z', 'settings': None, 'number': next(number)}\n"
        "    return Shown('x\\n', 'text', document)\n"
        "sys.exit(print_again_and_again(look, timedelta(milliseconds=1)))\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


class Node:
    """The only node of a server, for which maintenance may be requested."""

    def __init__(self) -> None:
        self.annotations: dict[str, str] = {}

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/api/v1/nodes":
            return json_answer(self._list("NodeList", self._node()))
        if asked.path == "/api/v1/pods":
            return json_answer(self._list("PodList"))
        return status(403, "Forbidden", "no")

    def _node(self) -> dict[str, Any]:
        metadata = {"name": "n", "uid": "n", "resourceVersion": "7", "annotations": self.annotations}
        ready = {"type": "Ready", "status": "True"}
        return {"kind": "Node", "metadata": metadata, "spec": {}, "status": {"conditions": [ready]}}

    def _list(self, kind: str, *items: dict[str, Any]) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"resourceVersion": "1"}, "items": [*items]}


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def kubeconfig(node: Node, tmp_path: Path) -> Iterator[Path]:
    stub = Stub(node.answer)
    yield stub.write_kubeconfig(tmp_path / "kubeconfig")
    stub.close()


@pytest.mark.heavy
@pytest.mark.parametrize(
    "command", [["report"], ["explain", "n"], *([["plan"]] if "plan" in COMMANDS else [])]
)
def test_what_a_command_shows_changes_with_the_cluster_and_not_with_time(
    command: list[str], node: Node, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Shown] = []

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(minutes=len(looks))

    def look_three_times(look: Callable[[], Shown], every: timedelta) -> int:
        assert every == timedelta(seconds=5)
        for kind in ("Reboot", "Reboot", "Redeploy"):
            # The drain may start at once, so its planned start is the moment of each look.
            node.annotations[REQUEST] = f'{{"kind":"{kind}","duration":"5m"}}'
            looks.append(look())
        return 0

    monkeypatch.setattr(looks_module, "print_again_and_again", look_three_times)
    callback = load(command[0]).callback
    assert callback is not None
    monkeypatch.setattr(sys.modules[callback.__module__], "datetime", Later)
    config = kubeconfig.with_name("maintenance.yaml")
    config.write_text('windows: [{name: always, start: "00:00", end: "24:00"}]', encoding="utf-8")

    assert (
        main([*command, "-w", "--every", "5s", "--config", str(config), "--kubeconfig", str(kubeconfig)]) == 0
    )
    first, later, other = (one.document for one in looks)
    assert first != later
    assert is_unchanged(first, later)
    assert not is_unchanged(later, other)


@pytest.mark.heavy
def test_an_explanation_is_written_in_place_on_a_terminal(
    node: Node, kubeconfig: Path, tmp_path: Path
) -> None:
    environment = install(tmp_path, "reconciler")
    command = [str(tmp_path / "reconciler"), "explain", "n", "-w", "--every", "1s"]

    with Terminal([*command, "--kubeconfig", str(kubeconfig)], environment) as terminal:
        shown = terminal.wait_for("n: whether something is announced is not known")
        assert CLEARED in shown
        assert shown.rpartition(CLEARED)[2].startswith("default settings: the ConfigMap")
        assert "reconciler: whether one runs is not known" in shown.rpartition(CLEARED)[2]
        node.annotations[REQUEST] = '{"kind":"Reboot"}'
        assert CLEARED in terminal.wait_for("Reboot")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "-w", "--out", "a.txt"], "--watch prints to stdout; leave out --out"),
        (["report", "-w", "-o", "html"], "--watch prints to stdout; leave out -o html"),
        (["report", "-w", "--metrics-file", "a.prom"], "--watch prints to stdout; leave out --metrics-file"),
        (["explain", "n", "-w", "--every", "0s"], "--every: write 1s or more"),
    ],
)
def test_what_can_not_be_watched_is_a_usage_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())


EARLIER, NOW, LATER = (f"2026-11-21T12:00:{seconds}Z" for seconds in ("00", "10", "20"))


def look(at: str, said: object = "", **settings: object) -> dict[str, Any]:
    return {"at": at, "settings": settings or None, "said": said}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([LATER], [LATER], id="fixed"),
        pytest.param({"start": EARLIER}, {"start": NOW}, id="moved"),
        pytest.param([f"from {EARLIER} to {LATER}"], [f"from {NOW} to {LATER}"], id="one of two"),
        pytest.param(EARLIER, NOW.replace("10Z", "11Z"), id="cut to another second"),
    ],
)
def test_moments_may_stay_or_move_with_the_look(before: object, after: object) -> None:
    assert is_unchanged(look(EARLIER, before), look(NOW, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(EARLIER, LATER, id="moved further"),
        pytest.param(f"from {EARLIER}", f"till {NOW}", id="another sentence"),
        pytest.param(None, NOW, id="known now"),
        pytest.param([EARLIER], [NOW, NOW], id="one more"),
        pytest.param({"a": EARLIER}, {"b": NOW}, id="another key"),
        pytest.param([1], [2], id="another number"),
        pytest.param("at 2026-99-99T99:99:99Z", "at 2026-99-99T99:99:98Z", id="a text that is no moment"),
    ],
)
def test_everything_else_is_a_change(before: object, after: object) -> None:
    assert not is_unchanged(look(EARLIER, before), look(NOW, after))


def test_settings_that_are_loaded_again_are_no_change_and_others_are() -> None:
    before = look(EARLIER, hash="a", loadedAt=EARLIER, ageSeconds=3)

    assert is_unchanged(before, look(NOW, hash="a", loadedAt=LATER, ageSeconds=0))
    assert not is_unchanged(before, look(NOW, hash="b", loadedAt=LATER, ageSeconds=0))
    assert not is_unchanged(before, look(NOW))


LINES = (Line("fine"), Line("late\x1b[2J", alarm=True))


class Tty:
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
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tty]:
    """The terminal of a person who has set nothing; each test makes it its stdout."""
    for name in ("NO_COLOR", "TERM", "LC_ALL", "LC_CTYPE", "LANG", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    made = Tty()
    yield made
    made.close()


def test_on_a_terminal_an_alarm_is_red_and_text_from_outside_controls_nothing(
    terminal: Tty, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest sets stdout before each test, so a fixture can't.
    monkeypatch.setattr(sys, "stdout", terminal.stdout)
    echo_lines(LINES)

    assert terminal.shown(2) == "fine\r\n\x1b[31mlate\\x1b[2J\x1b[0m\r\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_gets_none(
    terminal: Tty, monkeypatch: pytest.MonkeyPatch, name: str, value: str
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
    terminal: Tty, monkeypatch: pytest.MonkeyPatch
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
    terminal: Tty, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], blocks: bool
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal.stdout)

    assert screen().signs == (BLOCKS if blocks else ASCII)


def test_an_encoding_without_blocks_gets_ascii_and_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = Tty("ascii")
    monkeypatch.setattr(sys, "stdout", narrow.stdout)
    echo_lines([Line("“sale”")])

    assert narrow.shown(1) == "\\u201csale\\u201d\r\n"
    assert screen().signs == ASCII
    monkeypatch.undo()
    narrow.close()
