"""Which PodDisruptionBudgets held drains, and for how long: the worst of a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.model.ended_case import EndedCase
from reconciler.report.rows import Table, minute
from reconciler.report.text import shown
from reconciler.report.values import moment_value

_ROWS = 50
"""Budgets in a text, the worst; CSV and JSON have all of them."""


class BudgetTime(Struct, frozen=True):
    """For how many seconds a budget (`namespace/name`) held how many cases, `missed` ones among them.

    `worst` is the longest of one case, and `node` the one of that case. `last` is when the last case ended.
    """

    budget: str
    seconds: int
    cases: int
    missed: int
    worst: int
    node: str
    last: datetime


def budget_times(cases: Iterable[EndedCase]) -> tuple[BudgetTime, ...]:
    """Return each budget that held one of the cases, the worst first."""
    by_budget: dict[str, list[tuple[int, EndedCase]]] = {}
    for case in cases:
        for held in case.held_by:
            by_budget.setdefault(held.budget, []).append((held.seconds, case))
    times = []
    for budget, each in by_budget.items():
        worst, of = max(each, key=lambda held: held[0])
        times.append(
            BudgetTime(
                budget,
                sum(seconds for seconds, _ in each),
                len(each),
                sum(not case.outcome.good for _, case in each),
                worst,
                of.place.node,
                max(case.times.ended for _, case in each),
            )
        )
    return tuple(sorted(times, key=lambda time: (-time.seconds, time.budget)))


def _fields(time: BudgetTime) -> dict[str, Any]:
    return {
        "budget": time.budget,
        "heldSeconds": time.seconds,
        "cases": time.cases,
        "missed": time.missed,
        "worstSeconds": time.worst,
        "worstNode": time.node,
        "lastEnded": moment_value(time.last),
    }


def _length(seconds: int) -> str:
    return format_duration(timedelta(seconds=seconds))


BUDGETS: Table[BudgetTime] = Table(
    (
        ("budget", lambda time: time.budget),
        ("held", lambda time: _length(time.seconds)),
        ("cases", lambda time: str(time.cases)),
        ("missed", lambda time: str(time.missed)),
        ("longest", lambda time: _length(time.worst)),
        ("on", lambda time: time.node),
        ("last ended (UTC)", lambda time: minute(time.last)),
    ),
    2,
    lambda time: "",
    _fields,
)


def as_values(times: Iterable[BudgetTime]) -> list[Mapping[str, Any]]:
    """Return the budgets as plain values."""
    return list(map(_fields, times))


def as_csv(times: Iterable[BudgetTime]) -> str:
    """Return the budgets as CSV."""
    keys = ("budget", "heldSeconds", "cases", "missed", "worstSeconds", "worstNode", "lastEnded")
    return BUDGETS.csv(times, keys)


def as_text(times: Sequence[BudgetTime], width: int | None = None) -> str:
    """Return the worst budgets as a table, the worst first; None: lines have no limit."""
    lines = ["no budget held a drain, as far as the history says"]
    if times:
        lines = BUDGETS.lines(times[:_ROWS], width)
        lines += [f"and {len(times) - _ROWS} more; --output json has all"] if len(times) > _ROWS else []
    return shown(lines, ZoneInfo("UTC"), width)
