"""The log of passes: a line is news, never what the pass before said already."""

from __future__ import annotations

import ast
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.log_line import LogEvent, LogField
from jobs.runtime.logs import PassLog
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Hold, NodePlan, Plan
from reconciler.model.record import State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.report.columns import COLUMNS
from reconciler.settings.load import parse_settings
from reconciler.simulation.workloads import BudgetSpec
from tests.simulation.building import budget, name, web, world
from tests.support import builders
from tests.support.builders import NOW, REQUEST
from tests.support.worlds import look

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
    node = NodePlan("a", "", "", State.OPERATIONAL, State.OPERATIONAL, holds=holds, unread=unread)
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


@pytest.mark.parametrize("path", ["jobs/agent/program.py", "jobs/runtime/logs.py", "jobs/commands/serve.py"])
def test_every_field_and_event_is_of_the_one_vocabulary(path: str) -> None:
    known = {field.value for field in LogField} | {column.log for column in COLUMNS if column.log}
    fields, texts = _written(path)

    assert fields - known == set()
    assert texts == set()


def test_every_event_of_a_log_is_described() -> None:
    pages = [ROOT / "docs" / page for page in ("operating.md", "agent.md")]
    logs = "".join(page.read_text(encoding="utf-8").partition("\n## Logs\n")[2] for page in pages)

    assert [event for event in LogEvent if f"`{event}`" not in logs] == []
    assert [field for field in LogField if f"`{field}`" not in logs] == []


@pytest.mark.parametrize(
    ("text", "level"),
    [("intervals: {check: 5m}\nvCenters: {}\n", "warning"), ("mode: Enforce\n", "info")],
)
def test_settings_that_never_do_anything_are_a_warning(
    capsys: pytest.CaptureFixture[str], text: str, level: str
) -> None:
    PassLog.settings_loaded(parse_settings(text, "esx.yaml"))

    line = json.loads(capsys.readouterr().out)
    assert (line["event"], line["level"]) == ("settings loaded", level)
    assert ("nothing is ever done" in line.get("because", "")) == (level == "warning")
