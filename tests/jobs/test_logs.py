"""The log: lines that are JSON whatever is in them, and a line for each node with news."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime.log_line import LARGEST_LINE, Level, LogEvent, LogField, begin_log, to_line, write_events
from jobs.runtime.logs import PassLog, log_as_json
from reconciler.model.clocks import Disagreement
from reconciler.model.content import SettingsVersion
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Actions, Hold, NodePlan, NodeStatus, Plan, PlanSettings, Transition
from reconciler.model.record import State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.model.writes import ConditionsWrite
from reconciler.report.columns import columns
from reconciler.settings.load import parse_settings
from reconciler.simulation.workloads import BudgetSpec
from tests.simulation.building import budget, name, web, world
from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes
from tests.support.handlers import restored
from tests.support.worlds import look

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
    [lambda: PassLog.write(LogEvent.ENDING), lambda: write_events(LogEvent.ENDING, {}, level=Level.INFO)],
    ids=["passes", "others"],
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


@pytest.mark.parametrize("least", list(Level))
def test_no_line_below_the_level_of_the_log_is_written(
    capsys: pytest.CaptureFixture[str], least: Level
) -> None:
    levels = list(Level)
    with restored():
        log_as_json(least)
        for level in levels:
            PassLog.write(LogEvent.NODE, level=level)
        logging.getLogger("library").warning("it is slow")
        logging.getLogger("library").error("it failed")
        lines = [strict(line) for line in capsys.readouterr().out.splitlines()]
        begin_log()

    of_libraries = [Level.WARNING, Level.ERROR]
    wanted = [
        *levels[levels.index(least) :],
        *(one for one in of_libraries if one in levels[levels.index(least) :]),
    ]
    assert [line["level"] for line in lines] == wanted


def test_an_error_without_a_traceback_is_a_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    with restored():
        log_as_json()
        logging.getLogger("library").error("the watch failed", exc_info=False)
        found = strict(capsys.readouterr().out.rstrip("\n"))
    assert (found["event"], "traceback" in found) == ("the watch failed", False)


def test_the_line_of_a_start_names_the_settings_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    starting = Transition("default", State.REQUIRED, State.IN_MAINTENANCE, "the window night is open")
    begins = NodePlan(
        "a", "", "", State.REQUIRED, State.IN_MAINTENANCE, transitions=(starting,), status=NodeStatus(True)
    )
    waits = NodePlan("b", "", "", State.OPERATIONAL, State.REQUIRED)
    version = SettingsVersion("0123456789ab", NOW - minutes(5))
    PassLog().write_pass(
        Plan(NOW, "Enforce", (begins, waits), settings=PlanSettings(version)), (), rehearsed=False
    )

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


ROOT = Path(__file__).parents[2]
SETTINGS = "budget: {maxUnavailable: 1}\nuncordon: {settle: 0s}\n"


class Logged:
    """A log, and the lines that each pass wrote."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._log, self._capsys = PassLog(), capsys

    def of(self, plan: Plan, *outcomes: Outcome) -> list[dict[str, Any]]:
        self._log.write_pass(plan, outcomes, rehearsed=False)
        return [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Logged:
    return Logged(capsys)


def held(*holds: Hold, unread: tuple[tuple[str, str], ...] = ()) -> Plan:
    node = NodePlan(
        "a", "", "", State.OPERATIONAL, State.OPERATIONAL, holds=holds, status=NodeStatus(unread=unread)
    )
    return Plan(NOW, "Enforce", (node,))


def blocked_world() -> tuple[Any, Any]:
    """A node whose drain a budget blocks, and a second that waits for its place."""
    none: BudgetSpec = budget(max_unavailable=0)
    there = world(3, web(), budgets=(none,))
    for instance in (0, 1):
        there.cluster.annotate(
            name(instance), REQUEST, '{"kind":"Reboot","notBefore":"2026-12-02T07:30:00Z"}'
        )
    return there, builders.settings(SETTINGS)


def test_passes_that_only_go_on_write_nothing(logged: Logged) -> None:
    there, chosen = blocked_world()
    lines = []
    for _ in range(20):
        plan, outcomes = look(there, chosen)
        lines.append(logged.of(plan, *outcomes))
        there.advance(timedelta(seconds=10))

    assert [line["node"] for line in lines[0]] == [name(0), name(1)]
    quiet = [number for number, written in enumerate(lines) if not written]
    assert len(quiet) >= 15
    nodes = [(line["node"], *line["holds"]) for written in lines for line in written]
    assert len(nodes) == len(set(nodes))


def test_a_start_that_is_planned_for_the_moment_of_each_pass_is_logged_once(logged: Logged) -> None:
    node = NodePlan("a", "", "", State.OPERATIONAL, State.OPERATIONAL)
    later, last = NOW + timedelta(minutes=1), NOW + timedelta(hours=1)

    def lines(now: datetime, start: datetime) -> int:
        return len(logged.of(Plan(now, "Observe", (replace(node, schedule=CaseSchedule(start)),))))

    assert lines(NOW, NOW) == 1
    assert lines(later, later) == 0
    assert lines(later, last) == 1
    assert lines(last, last) == 1


def test_a_line_of_a_node_has_its_deadline_in_utc(logged: Logged) -> None:
    there, chosen = blocked_world()
    plan, outcomes = look(there, chosen)

    assert {line["deadline"] for line in logged.of(plan, *outcomes)} == {"2026-12-02T07:15:00Z"}


@pytest.mark.parametrize(
    ("first", "second", "news"),
    [
        ("the clock is 31s ahead", "the clock is 47s ahead", False),
        ("silent for 1h2m", "silent for 1h3m", False),
        ("after 0:30:00", "after 1 day, 0:31:00", False),
        ("waits for web-1", "waits for web-2", True),
        ("needs 2 healthy, has 1", "needs 2 healthy, has 0", True),
        ("opens at 2026-11-21T22:00:00Z", "opens at 2026-11-22T22:00:00Z", True),
    ],
)
def test_a_hold_is_logged_when_it_changes_and_not_while_it_counts(
    logged: Logged, first: str, second: str, news: bool
) -> None:
    assert len(logged.of(held(Hold("a", "windowOpen", first)))) == 1
    assert len(logged.of(held(Hold("a", "windowOpen", second)))) == int(news)


def test_the_end_of_a_hold_is_logged_once(logged: Logged) -> None:
    logged.of(held(Hold("a", "windowOpen", "closed"), unread=(("imds", "silent"),)))
    after = held(unread=(("imds", "silent"),))

    assert [line["holds"] for line in logged.of(after)] == [[]]
    assert logged.of(after) == []


def test_a_failure_is_logged_once_while_it_stays_the_same(logged: Logged) -> None:
    failed = Outcome("a", "cordon", Result.FAILED, "no")
    plan = Plan(NOW, "Enforce")

    assert [line["event"] for line in logged.of(plan, failed)] == ["failed"]
    assert logged.of(plan, failed) == []
    assert [line["because"] for line in logged.of(plan, replace(failed, detail="never"))] == ["never"]
    assert logged.of(plan) == []
    assert [line["because"] for line in logged.of(plan, failed)] == ["no"]


def _written(path: str) -> tuple[set[str], set[str]]:
    """The fields and the texts of events in the calls of a file that write a line."""
    fields: set[str] = set()
    texts: set[str] = set()
    for call in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if not isinstance(call, ast.Call):
            continue
        named = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if named not in ("write", "_log", "log_line") or not call.args:
            continue
        fields |= {word.arg for word in call.keywords if word.arg}
        if isinstance(call.args[0], ast.Constant):
            texts.add(str(call.args[0].value))
    return fields, texts


@pytest.mark.parametrize("path", ["jobs/runtime/logs.py", "jobs/commands/serve.py"])
def test_every_field_and_event_is_of_the_one_vocabulary(path: str) -> None:
    known = {field.value for field in LogField} | {column.log for column in columns().values()}
    fields, texts = _written(path)

    assert fields - known == set()
    assert texts == set()


def test_every_event_of_a_log_is_described() -> None:
    logs = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8").partition("\n## Logs\n")[2]

    assert [event for event in LogEvent if f"`{event}`" not in logs] == []
    assert [field for field in LogField if f"`{field}`" not in logs] == []


@pytest.mark.parametrize(
    ("text", "level"), [("intervals: {check: 5m}\nothers: {}\n", "warning"), ("mode: Enforce\n", "info")]
)
def test_settings_that_never_do_anything_are_a_warning(
    capsys: pytest.CaptureFixture[str], text: str, level: str
) -> None:
    PassLog.settings_loaded(parse_settings(text, "esx.yaml"), "blue")

    line = json.loads(capsys.readouterr().out)
    assert (line["event"], line["level"]) == ("settings loaded", level)
    assert ("nothing is ever done" in line.get("because", "")) == (level == "warning")


def test_clocks_that_disagree_are_logged_once_with_both_times_and_so_is_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = datetime(2026, 5, 11, 12, tzinfo=UTC)
    few = Disagreement(timedelta(minutes=4), 1, 30, counts=False)
    log = PassLog()
    for disagreement in (
        None,
        few,
        Disagreement(timedelta(minutes=4)),
        Disagreement(timedelta(minutes=5)),
        few,
    ):
        log.clocks(Plan(now, "Enforce", disagreement=disagreement))

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("the clocks of the API servers disagree", "warning"),
        ("the clocks of the API servers agree", "info"),
    ]
    assert "2026-05-11T12:04:00Z, the others 2026-05-11T12:00:00Z" in lines[0]["because"]
