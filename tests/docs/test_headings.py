"""Everything that a person can set or see has its heading, row or entry in docs/."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from jobs.cli import commands
from jobs.commands import COMMANDS
from reconciler.model.explanation import NodeExplanation
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.record import State
from reconciler.model.schedule import CaseForecast, CaseSchedule, DrainObstacle, ObstacleCode, Prospect
from reconciler.model.unguarded import UnguardedWhy
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.triggers import TRIGGERS
from reconciler.report.document import to_report
from reconciler.report.explained import Explanation
from reconciler.report.kinds import hold_kinds
from reconciler.report.values import plain
from tests.docs.pages import headings, named, rows, written

ROOT = Path(__file__).parents[2]


def constants(tree: ast.AST, call: str, position: int) -> set[str]:
    """Every literal text that stands at that position in calls of that name."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == call:
            argument = node.args[position] if len(node.args) > position else None
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                found.add(argument.value)
    return found


def sources(*calls: str) -> list[ast.AST]:
    """The files that call one of these."""
    paths = (path for room in ("reconciler", "jobs") for path in (ROOT / room).rglob("*.py"))
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return [ast.parse(text) for text in texts if any(f"{call}(" in text for call in calls)]


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_every_check_has_its_heading(name: str) -> None:
    assert name in headings("holds.md")


@pytest.mark.parametrize("name", sorted(TRIGGERS))
def test_every_trigger_has_its_row(name: str) -> None:
    assert name in rows("operating.md")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_its_heading(name: str) -> None:
    assert f"reconciler {name}" in headings("commands.md")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_of_a_command_is_documented(name: str) -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    options = {option for parameter in command.params for option in parameter.opts}
    unsaid = {option for option in options if option.startswith("--") and option not in pages}

    assert unsaid == set()


@pytest.mark.parametrize("code", ["0", "1", "2", "3", "4"])
def test_every_exit_code_has_its_heading(code: str) -> None:
    assert code in headings("operating.md")


def test_every_key_of_the_output_is_described() -> None:
    node = NodePlan("a", "", "", State.OPERATIONAL, State.OPERATIONAL)
    document = to_report(
        Plan(now=datetime(2026, 11, 21, tzinfo=UTC), mode="Enforce", nodes=(node,)), rehearsed=True
    ).document
    keys = set(document) | set(document["nodes"][0])

    assert keys - named("output.md") == set()


def test_every_key_of_an_explanation_is_described() -> None:
    node = NodePlan("a", "", "", State.OPERATIONAL, State.OPERATIONAL)
    document = Explanation(
        Plan(now=datetime(2026, 11, 21, tzinfo=UTC), mode="Enforce"), NodeExplanation(plan=node)
    ).document
    keys = set(document) | set(document["node"])

    assert {"pod", "node", "obstacles"} <= keys
    assert keys - named("output.md") == set()


def test_every_reason_why_a_node_is_unguarded_has_its_row() -> None:
    section = written("planning.md").partition("\n## Unguarded nodes\n")[2].partition("\n## ")[0]
    rows = {line.split("|")[1].strip(" `") for line in section.splitlines() if line.startswith("| `")}

    assert rows == {each.value for each in UnguardedWhy}


def test_every_forecast_and_every_obstacle_of_a_case_is_described() -> None:
    section = written("planning.md").partition("\n### Whether a drain can end\n")[2].partition("\n## ")[0]
    obstacle = DrainObstacle(ObstacleCode.WAITS, "shop/web", "", "it waits", "Wait.")
    schedule = plain(CaseSchedule(prospect=Prospect((obstacle,))))

    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    assert [row[1].strip(" `") for row in rows] == [one.value for one in CaseForecast]
    codes = re.findall(r"`(\w+)`", "".join(row[3] for row in rows))
    assert sorted(codes) == sorted(code.value for code in ObstacleCode)
    keys = {*schedule, *schedule["obstacles"][0]}
    assert {key for key in keys if f"`{key}`" not in written("output.md")} == set()


def test_every_hold_and_every_kubernetes_event_is_named() -> None:
    trees = sources("Notice", "Hold")
    holds = set(hold_kinds()) - set(CHECKS)
    notices = set().union(*(constants(tree, "Notice", 0) for tree in trees))

    # A code spelled where a hold is made would be in no list.
    assert set().union(*(constants(tree, "Hold", 1) for tree in trees)) == set()
    assert holds
    assert notices
    assert (holds | notices) - rows("operating.md") - headings("holds.md") == set()
