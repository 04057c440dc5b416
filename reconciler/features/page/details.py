"""The lower part of the page: budgets and what they block, and the headings of the settings in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.features.page.facts import PageFacts
from reconciler.model.drains import Blocker
from reconciler.model.plan import NodePlan, Plan

_MOST = 30
"""Rows of one table."""

_NAMES = 3


class Blocking(Struct, frozen=True):
    """A PodDisruptionBudget that refuses evictions, or none, with the pods and the nodes that wait for it."""

    budget: str
    pods: str
    nodes: str
    because: str


class SourceRow(Struct, frozen=True):
    """A source: the age of its last answer, and on how many nodes it reports an event, none, or nothing."""

    name: str
    age: str
    events: int
    quiet: int
    unknown: int


class Sources(Struct, frozen=True):
    """The sources that answered about a node, and the names of those that did not."""

    answered: tuple[SourceRow, ...] = ()
    silent: tuple[str, ...] = ()


class Paragraph(Struct, frozen=True):
    """Some lines of the settings in words; the heading of the first one is empty."""

    heading: str
    lines: tuple[str, ...]


def blocking(plan: Plan) -> tuple[Blocking, ...]:
    """Return which PodDisruptionBudgets refuse evictions now, those with the most pods first."""
    found: dict[str, list[tuple[str, Blocker]]] = {}
    for node in plan.nodes:
        for blocker in _blockers(node):
            if blocker.budget:
                found.setdefault(blocker.budget, []).append((node.node, blocker))
    rows = sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return tuple(
        Blocking(
            budget,
            _some(blocker.pod for _, blocker in waiting),
            _some(node for node, _ in waiting),
            waiting[0][1].because,
        )
        for budget, waiting in rows[:_MOST]
    )


def sources(facts: PageFacts) -> Sources:
    """Return what the sources answered, in the order of the plan."""
    now = facts.plan.now
    answered, silent = [], []
    for one in facts.plan.sources:
        if one.events or one.quiet or one.unknown:
            answered.append(SourceRow(one.name, _age(one.last, now), one.events, one.quiet, one.unknown))
        else:
            silent.append(one.name)
    return Sources(tuple(answered), tuple(silent))


def _age(last: datetime | None, now: datetime) -> str:
    if last is None:
        return "none"
    age = timedelta(seconds=int((now - last).total_seconds()))
    return f"{format_duration(age)} ago" if age > timedelta() else "in this pass"


def paragraphs(words: str) -> tuple[Paragraph, ...]:
    """Return the settings in words by their headings: a heading is a line above lines that are indented."""
    found: list[tuple[str, list[str]]] = [("", [])]
    lines = words.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line and not line.startswith(" ") and following.startswith(" "):
            found.append((line, []))
        elif line:
            found[-1][1].append(line.strip())
    return tuple(Paragraph(heading, tuple(said)) for heading, said in found if said)


def _blockers(node: NodePlan) -> Iterator[Blocker]:
    progress, preview = node.draining.progress, node.draining.preview
    if progress is not None:
        yield from progress.blockers
    elif preview is not None:
        yield from preview.blockers


def _some(names: Iterable[str]) -> str:
    known = list(dict.fromkeys(names))
    more = len(known) - _NAMES
    return ", ".join(known[:_NAMES]) + (f" and {more} more" if more > 0 else "")
