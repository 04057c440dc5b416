"""The cases of the page, with their facts and details."""

from __future__ import annotations

from datetime import datetime, timedelta

from markupsafe import escape
from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.features.page.facts import MEANINGS, PageFacts, cell_of
from reconciler.model.drains import Blocker
from reconciler.model.limits import first_of
from reconciler.model.moments import to_text
from reconciler.model.plan import NodePlan, Plan, SourceState
from reconciler.report import safe
from reconciler.report.acting import carried_out
from reconciler.report.columns import NodeReport, Row, for_people, state_line
from reconciler.report.document import Report

_MOST = 30
"""Rows of one table."""

_NAMES = 3


class BudgetInTheWay(Struct, frozen=True):
    """A PodDisruptionBudget that refuses evictions, or none, with the pods and the nodes that wait for it."""

    budget: str
    pods: str
    nodes: str
    because: str


class Sources(Struct, frozen=True):
    """The sources that answered about a node, and the names of those that did not."""

    answered: tuple[SourceState, ...] = ()
    silent: tuple[str, ...] = ()


class Paragraph(Struct, frozen=True):
    """Some lines of the settings in words; the heading of the first one is empty."""

    heading: str
    lines: tuple[str, ...]


def blocking(plan: Plan) -> tuple[BudgetInTheWay, ...]:
    """Return which PodDisruptionBudgets refuse evictions now, those with the most pods first."""
    refused: dict[str, list[tuple[str, Blocker]]] = {}
    for node in plan.nodes:
        # What a drain meets counts, not what was foreseen of it.
        progress, preview = node.draining.progress, node.draining.preview
        seen = progress if progress is not None else preview
        for blocker in seen.blockers if seen is not None else ():
            if blocker.budget:
                refused.setdefault(blocker.budget, []).append((node.node, blocker))
    rows = sorted(refused.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return tuple(
        BudgetInTheWay(
            budget,
            first_of(list(dict.fromkeys(blocker.pod for _, blocker in waiting)), _NAMES),
            first_of(list(dict.fromkeys(node for node, _ in waiting)), _NAMES),
            waiting[0][1].because,
        )
        for budget, waiting in rows[:_MOST]
    )


def sources(facts: PageFacts) -> Sources:
    """Return what the sources answered, in the order of the plan."""
    every = facts.plan.sources
    answered = tuple(source for source in every if source.events or source.quiet or source.unknown)
    return Sources(answered, tuple(source.name for source in every if source not in answered))


def age(last: datetime | None, now: datetime) -> str:
    """Return how old the last answer of a source is."""
    if last is None:
        return "none"
    seconds = timedelta(seconds=int((now - last).total_seconds()))
    return f"{format_duration(seconds)} ago" if seconds > timedelta() else "in this pass"


def paragraphs(words: str) -> tuple[Paragraph, ...]:
    """Return the settings in words by their headings: a heading is a line above lines that are indented."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    lines = words.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line and not line.startswith(" ") and following.startswith(" "):
            sections.append((line, []))
        elif line:
            sections[-1][1].append(line.strip())
    return tuple(Paragraph(heading, tuple(said)) for heading, said in sections if said)


MOST_ROWS = 400
"""Rows of the table, the most urgent ones."""

MOST_BYTES = 380_000
"""Bytes of all rows: long texts from outside must not make the page too large to open."""

_MOST_LINES = 8
"""Lines of one kind in a row."""

_LONGEST = 400
"""Characters of a line."""

_TAGS = 40
"""Bytes of the tags around a text."""

_FIRST = ("planned", "forecast", "drain")
"""The labels of lines of which the first one sums up the others."""

_LEFT_OUT = ("name", "zone", "pool", "holds", "unguarded", "unknown", "preview")


class HoldLine(Struct, frozen=True):
    """What holds a node, and who can end that. `until` is when it ends at the latest, empty if not known."""

    because: str
    who: str
    code: str
    until: str


class CaseRow(Struct, frozen=True):
    """One node. `cell` is the name of its kind in the fleet's grid, `kind` says that in words.

    `summary` is the line to read first, and `lines` are the others.
    """

    node: str
    place: str
    cell: str
    kind: str
    state: str
    summary: Row
    lines: tuple[Row, ...]
    held: tuple[HoldLine, ...]

    @property
    def size(self) -> int:
        """About how many bytes it takes as HTML."""
        said = sum(_TAGS + _bytes(text) for _, text in (self.summary, *self.lines))
        return (
            7 * _TAGS + said + sum(3 * _TAGS + _bytes(hold.because) + _bytes(hold.who) for hold in self.held)
        )


class Cases(Struct, frozen=True):
    """The rows, and how many are left out."""

    rows: tuple[CaseRow, ...]
    left_out: int = 0


def cases(facts: PageFacts, report: Report) -> Cases:
    """Return the rows of the nodes with news, in the order of the report about the plan."""
    plans = {node.node: node for node in facts.plan.nodes}
    pairs = ((plans[about.name], about) for about in report.nodes)
    news = [(node, about) for node, about in pairs if node.has_news]
    rows: list[CaseRow] = []
    size = 0
    for node, about in news[:MOST_ROWS]:
        row = _row(node, about, facts)
        size += row.size
        if size > MOST_BYTES:
            break
        rows.append(row)
    return Cases(tuple(rows), len(news) - len(rows))


def _row(node: NodePlan, report: NodeReport, facts: PageFacts) -> CaseRow:
    cell = cell_of(node, facts)
    zone = f"zone {node.zone}" if node.zone else ""
    pool = f"pool {node.pool}" if node.pool else ""
    by = carried_out(facts.plan, rehearsed=facts.rehearsed)
    lines: list[Row] = []
    for column in for_people():
        if column.rows is None or column.key in _LEFT_OUT:
            continue
        rows = list(column.rows(report, by))
        lines += [(label, _cut(text)) for label, text in rows[:_MOST_LINES]]
        if len(rows) > _MOST_LINES:
            lines.append(("", f"and {len(rows) - _MOST_LINES} more"))
    planned = next((line for line in lines if line[0] in _FIRST), lines[0] if lines else ("", ""))

    # What waits for a person comes first.
    obstacles = sorted(facts.obstacles.get(node.node, ()), key=lambda obstacle: obstacle.by_itself)
    held = []
    for obstacle in obstacles[:_MOST_LINES]:
        until = f"until {to_text(obstacle.until)}" if obstacle.until is not None else ""
        held.append(HoldLine(_cut(obstacle.because), _cut(obstacle.who), obstacle.code, until))
    if len(obstacles) > _MOST_LINES:
        held.append(HoldLine(f"and {len(obstacles) - _MOST_LINES} more", "", "", ""))
    return CaseRow(
        node=node.node,
        place=", ".join(part for part in (zone, pool) if part),
        cell=cell.value if cell is not None else "",
        kind=MEANINGS[cell] if cell is not None else "",
        state=state_line(report, by),
        summary=planned,
        lines=tuple(line for line in lines if line is not planned),
        held=tuple(held),
    )


def _bytes(text: str) -> int:
    """Return how many bytes a text takes once it is escaped: a change of direction takes six."""
    return len(escape(safe.line(text)).encode())


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
