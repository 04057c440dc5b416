"""What the cluster keeps of a history: the cases that ended, and what people did."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reconciler.features.history import NAME
from reconciler.kubernetes.kept_lines import LineKind
from reconciler.model import ended_case, sayings
from reconciler.model.ended_case import EndedCase
from reconciler.model.sayings import DEED, Deed

HistoryLine = EndedCase | Deed


def _at(line: HistoryLine) -> datetime:
    return line.times.ended if isinstance(line, EndedCase) else line.at


def _identity(line: HistoryLine) -> tuple[object, ...]:
    if isinstance(line, EndedCase):
        return line.identity
    return (line.node_uid, line.scope, line.did, line.at, line.given, line.by)


def _write(line: HistoryLine) -> Mapping[str, Any]:
    if isinstance(line, EndedCase):
        return {"event": ended_case.EVENT, **ended_case.to_fields(line)}
    return {"event": DEED, **sayings.to_fields(line)}


def _read(fields: Mapping[str, Any]) -> HistoryLine:
    if not isinstance(fields, Mapping):
        raise ValueError("it is no JSON object")
    if fields.get("event") == DEED:
        return sayings.from_fields(fields)
    return ended_case.from_fields(fields)


HISTORY: LineKind[HistoryLine] = LineKind(
    NAME,
    "cases that ended and what people did",
    "what happens from then on is kept",
    _at,
    _identity,
    _write,
    _read,
)
