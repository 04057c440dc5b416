"""Log lines: JSON in UTF-8 of limited length, whatever comes from outside."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.agent import program
from jobs.runtime.log_line import LARGEST_LINE, LogEvent, to_line
from jobs.runtime.logs import PassLog, log_as_json
from reconciler.model.content import SettingsVersion
from reconciler.model.plan import Actions, NodePlan, Plan, Transition
from reconciler.model.record import State
from reconciler.model.writes import ConditionsWrite
from tests.support.builders import NOW, minutes
from tests.support.handlers import restored

# With surrogates and control characters, unlike the default.
TEXTS = st.text(st.characters(), max_size=50)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
)


class Unshowable:
    """An object of a library whose text is an error."""

    def __str__(self) -> str:
        raise ValueError("no text")


def strict(line: str) -> Any:
    """Read a line as a strict collector does: UTF-8, one line, JSON without NaN."""

    def refuse(name: str) -> Any:
        raise ValueError(name)

    assert len(line.encode("utf-8")) <= LARGEST_LINE
    assert line.isprintable(), "a terminal would obey it"
    found = json.loads(line, parse_constant=refuse)
    json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


@given(st.dictionaries(TEXTS, VALUES, max_size=8))
def test_whatever_is_logged_is_a_line_of_json(fields: dict[str, Any]) -> None:
    assert isinstance(strict(to_line(fields)), dict)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 1_000_000,
        ["x" * 4_000] * 4_000,
        {str(number): "\x1b" * 5_000 for number in range(5_000)},
        10**5_000,
        float("nan"),
        Unshowable(),
        "\ud800",
    ],
    ids=["text", "list", "mapping", "number", "nan", "unshowable", "surrogate"],
)
def test_what_is_too_much_is_cut_and_the_rest_stays(value: object) -> None:
    found = strict(to_line({"event": "node", "holds": value, "node": "a"}))
    assert (found["event"], found["node"]) == ("node", "a")


def test_nesting_ends() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert strict(to_line({"event": "node", "holds": endless}))["event"] == "node"


def test_many_big_fields_still_leave_the_event() -> None:
    fields = {f"field {number}": ["\u0001" * 100] * 100 for number in range(100)}
    assert strict(to_line({"event": "node", **fields}))["event"] == "node"


def test_usual_fields_stay_as_they_are() -> None:
    fields = {"event": "node", "dryRun": True, "holds": [{"check": "budgetLeft", "reason": "ä…"}], "count": 2}
    assert json.loads(to_line(fields)) == fields
    assert "ä" in to_line(fields)


class _Pieces(io.StringIO):
    """A stream that keeps what each call writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def write(self, text: str) -> int:
        self.written.append(text)
        return len(text)


@pytest.mark.parametrize(
    "log",
    [lambda: PassLog.write(LogEvent.ENDING), lambda: program._log(LogEvent.ENDING)],
    ids=["passes", "the node agent"],
)
def test_a_line_is_written_in_one_piece_so_that_no_other_thread_comes_in_between(
    log: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = _Pieces()
    monkeypatch.setattr(sys, "stdout", stream)

    log()

    (line,) = stream.written
    assert strict(line.removesuffix("\n"))["event"] == "ending"
    assert line.endswith("\n")


def test_an_unexpected_error_is_logged_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise OverflowError("date \ud800 value out of range")

    try:
        broken()
    except OverflowError as error:
        PassLog().unexpected(error, 3, 4.0)

    found = strict(capsys.readouterr().out.rstrip("\n"))
    assert (found["event"], found["level"], found["failures"]) == ("pass failed", "error", 3)
    assert "date \ufffd value out of range" in found["because"]
    assert re.search(r"in broken\n", found["traceback"])


def test_the_logs_of_libraries_are_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    with restored():
        log_as_json()
        try:
            raise ValueError("\ud800" * 20_000)
        except ValueError:
            logging.getLogger("library").exception("it \ud800 failed\n%s", "x" * 100_000)
        found = strict(capsys.readouterr().out.rstrip("\n"))
    assert (found["logger"], found["level"]) == ("library", "error")
    assert found["event"].startswith("it \ufffd failed\nxxx")
    assert "traceback" in found


def test_an_error_without_a_traceback_is_a_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    with restored():
        log_as_json()
        logging.getLogger("library").error("the watch failed", exc_info=False)
        found = strict(capsys.readouterr().out.rstrip("\n"))
    assert (found["event"], "traceback" in found) == ("the watch failed", False)


def test_the_line_of_a_start_names_the_settings_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    starting = Transition("default", State.REQUIRED, State.IN_MAINTENANCE, "the window night is open")
    begins = NodePlan(
        "a", "", "", State.REQUIRED, State.IN_MAINTENANCE, transitions=(starting,), unschedulable=True
    )
    waits = NodePlan("b", "", "", State.OPERATIONAL, State.REQUIRED)
    version = SettingsVersion("0123456789ab", NOW - minutes(5))
    PassLog().write_pass(Plan(NOW, "Enforce", (begins, waits), settings=version), (), rehearsed=False)

    first, second = (strict(line) for line in capsys.readouterr().out.splitlines())
    loaded = {"hash": "0123456789ab", "loadedAt": "2026-11-21T11:55:00Z", "ageSeconds": 300}
    assert first["settings"] == loaded
    assert "settings" not in second


def test_a_pass_that_wrote_nothing_logs_what_it_would_do_under_keys_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write = ConditionsWrite("a", "uid-a")
    begins = NodePlan(
        "a",
        "",
        "",
        State.REQUIRED,
        State.IN_MAINTENANCE,
        todo=Actions(stop_drain=True, publications=(write,)),
    )
    PassLog().write_pass(Plan(NOW, "Observe", (begins,)), (), rehearsed=True)

    line = strict(capsys.readouterr().out.rstrip("\n"))
    assert (line["state"], line["actions"]) == ("maintenance-required", [])
    assert (line["wouldBe"], line["wouldDo"]) == ("in-maintenance", ["stop drain", "conditions"])
