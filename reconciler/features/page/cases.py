"""The rows of the table of cases: what the report says of a node, and who can end what holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from markupsafe import escape
from msgspec import Struct

from reconciler.features.page.facts import PageFacts
from reconciler.features.page.fleet import MEANINGS, cell_of
from reconciler.model.explanation import Obstacle
from reconciler.model.moments import to_text
from reconciler.model.plan import NodePlan
from reconciler.model.record import State
from reconciler.report import safe
from reconciler.report.columns import FOR_PEOPLE, Row, state_line
from reconciler.report.values import Document

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

_LEFT_OUT = ("name", "zone", "pool", "holds", "unknown", "preview")


class Held(Struct, frozen=True):
    """What holds a node, and who can end that. `until` is when it ends at the latest, empty if not known."""

    because: str
    who: str
    code: str
    until: str


class CaseRow(Struct, frozen=True):
    """One node. `cell` is the name of its kind in the fleet's grid, `kind` says that in words."""

    node: str
    place: str
    cell: str
    kind: str
    state: str
    lines: tuple[Row, ...]
    held: tuple[Held, ...]

    @property
    def size(self) -> int:
        """About how many bytes it takes as HTML."""
        said = sum(_TAGS + _bytes(text) for _, text in self.lines)
        return 7 * _TAGS + said + sum(3 * _TAGS + _bytes(one.because) + _bytes(one.who) for one in self.held)


class Cases(Struct, frozen=True):
    """The rows, and how many are left out."""

    rows: tuple[CaseRow, ...]
    left_out: int = 0


def cases(facts: PageFacts, document: Document) -> Cases:
    """Return the rows of the nodes with news, in the order of the plan; `document` is its report."""
    documents: Mapping[str, Document] = {node["name"]: node for node in document["nodes"]}
    found = [node for node in facts.plan.nodes if _has_news(node)]
    rows: list[CaseRow] = []
    size = 0
    for node in found[:MOST_ROWS]:
        row = _row(node, documents[node.node], facts)
        size += row.size
        if size > MOST_BYTES:
            break
        rows.append(row)
    return Cases(tuple(rows), len(found) - len(rows))


def _has_news(node: NodePlan) -> bool:
    """Whether there is more about the node than a source that can't be read."""
    news = node.events or node.holds or node.acts or node.transitions
    return bool(news) or node.after is not State.OPERATIONAL


def _row(node: NodePlan, document: Document, facts: PageFacts) -> CaseRow:
    cell = cell_of(node, facts.presses, rehearsed=facts.rehearsed)
    zone = f"zone {node.zone}" if node.zone else ""
    pool = f"pool {node.pool}" if node.pool else ""
    # What waits for a person comes first.
    held = sorted(facts.obstacles.get(node.node, ()), key=lambda one: one.by_itself)
    return CaseRow(
        node=node.node,
        place=", ".join(part for part in (zone, pool) if part),
        cell=cell.value if cell is not None else "",
        kind=MEANINGS[cell] if cell is not None else "",
        state=state_line(document, would=facts.rehearsed),
        lines=tuple(_short(label, text) for label, text in _lines(document, would=facts.rehearsed)),
        held=tuple(_held(one) for one in held[:_MOST_LINES])
        + ((Held(f"and {len(held) - _MOST_LINES} more", "", "", ""),) if len(held) > _MOST_LINES else ()),
    )


def _lines(document: Document, *, would: bool) -> Iterator[Row]:
    for column in FOR_PEOPLE:
        if column.rows is None or column.key in _LEFT_OUT:
            continue
        rows = list(column.rows(document[column.key], would))
        yield from rows[:_MOST_LINES]
        if len(rows) > _MOST_LINES:
            yield "", f"and {len(rows) - _MOST_LINES} more"


def _held(one: Obstacle) -> Held:
    until = f"until {to_text(one.until)}" if one.until is not None else ""
    return Held(_cut(one.because), _cut(one.who), one.code, until)


def _short(label: str, text: str) -> Row:
    return label, _cut(text)


def _bytes(text: str) -> int:
    """Return how many bytes a text takes once it is escaped: a change of direction takes six."""
    return len(escape(safe.line(text)).encode())


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
