"""Rows of the history, one for each case or deed, as a table for people and as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from reconciler.calendar.values import format_duration
from reconciler.features.history.summary import Summary, between
from reconciler.model import sayings
from reconciler.model.ended_case import EndedCase, to_fields
from reconciler.model.instructions import ALL
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.model.sayings import Deed
from reconciler.report import safe
from reconciler.report.rows import Table, minute, second
from reconciler.report.text import shown
from reconciler.report.values import Document, head, moment_value


def _length(length: timedelta | None) -> str:
    return "" if length is None else format_duration(length)


def _pods(case: EndedCase) -> str:
    moved = "-" if case.pods_moved is None else case.pods_moved
    left = "-" if case.pods_left is None else case.pods_left
    return "" if case.pods_moved is None and case.pods_left is None else f"{moved} ({left})"


def _held(case: EndedCase) -> list[str]:
    """Return `shop/ledger held 1m46s` for each budget."""
    return [f"{held.budget} held {format_duration(timedelta(seconds=held.seconds))}" for held in case.held_by]


def _of_case(case: EndedCase) -> str:
    why = "" if case.outcome.good else case.why
    return safe.line("; ".join(filter(None, (why, *_held(case)))))


CASES: Table[EndedCase] = Table(
    (
        ("ended (UTC)", lambda case: minute(case.times.ended)),
        ("node", lambda case: case.place.node),
        ("outcome", lambda case: case.outcome.value),
        ("in time", lambda case: case.outcome.in_time.value),
        ("kind", lambda case: case.kind),
        ("pool", lambda case: case.place.pool),
        ("drain", lambda case: _length(between(case.times.started, case.times.drained))),
        ("pods (left)", _pods),
    ),
    3,
    _of_case,
    lambda case: {**to_fields(case), "heldBy": [{"words": words} for words in _held(case)]},
)


def _where(deed: Deed) -> str:
    return deed.node or {"": "", ALL: "all nodes"}.get(deed.scope, deed.scope)


def _why(deed: Deed) -> str:
    """Return the sentence below a row: the reason, and what else the row does not say."""
    given = deed.given if deed.given is not None and abs(deed.at - deed.given) > _LATE else None
    parts = [
        deed.why,
        f"given at {to_text(given)}" if given is not None else "",
        f"until {to_text(deed.until)}" if deed.until is not None else "",
        f"{count_of(deed.more, 'row')} before it left out: too many in an hour" if deed.more else "",
    ]
    return safe.line("; ".join(filter(None, parts)))


_LATE = timedelta(minutes=2)
"""How long after its moment a word is seen by a pass, as a rule, at most."""

DEEDS: Table[Deed] = Table(
    (
        ("seen (UTC)", lambda deed: second(deed.at)),
        ("did", lambda deed: deed.did),
        ("on", _where),
        ("by", lambda deed: deed.by),
    ),
    2,
    _why,
    sayings.to_fields,
)

_DEED_KEYS = (
    *("at", "did", "by", "verified", "node", "scope", "case", "given", "until", "why", "more", "nodeUid"),
)

_CASE_KEYS = (
    *("ended", "node", "outcome", "inTime", "kind", "pool", "zone", "cluster", "notBefore", "announced"),
    *(
        "planned",
        "started",
        "drained",
        "gone",
        "uncordoned",
        "podsMoved",
        "podsLeft",
        "heldBy",
        "why",
        "people",
    ),
    *("sources", "uid", "caseStart"),
)


def budget_document(
    summary: Summary, budgets: list[Mapping[str, Any]], node: str | None, source: Document
) -> Document:
    """Return the budgets that held drains as plain values."""
    return {**_head(summary, node, source), "budgets": budgets, **summary.read}


def case_document(summary: Summary, node: str | None, source: Document) -> Document:
    """Return the cases as plain values, each with the fields of its line. `node`: only of this one."""
    return {
        **_head(summary, node, source),
        "cases": [to_fields(case) for case in summary.cases],
        **summary.read,
    }


def deed_document(summary: Summary, deeds: Iterable[Deed], node: str | None, source: Document) -> Document:
    """Return what people did as plain values, each with the fields of its line."""
    return {**_head(summary, node, source), "audit": list(map(sayings.to_fields, deeds)), **summary.read}


def _head(summary: Summary, node: str | None, source: Document) -> Document:
    return {**head(summary.at), "since": moment_value(summary.since), "node": node, **source}


def deeds_as_csv(deeds: Iterable[Deed]) -> str:
    """Return what people did as CSV."""
    return DEEDS.csv(deeds, _DEED_KEYS)


def deeds_as_text(deeds: Sequence[Deed], width: int | None = None) -> str:
    """Return what people did as a table, the latest last; None: lines have no limit."""
    lines = DEEDS.lines(deeds, width) if deeds else ["nothing that a person did is in the history"]
    return shown(lines, ZoneInfo("UTC"), width)


def cases_as_csv(summary: Summary) -> str:
    """Return the cases as CSV."""
    return CASES.csv(summary.cases, _CASE_KEYS)


def cases_as_text(summary: Summary, width: int | None = None) -> str:
    """Return the cases as a table, the latest end last; None: lines have no limit."""
    lines = CASES.lines(summary.cases, width) if summary.cases else [summary.headline]
    return shown(lines, ZoneInfo("UTC"), width)
