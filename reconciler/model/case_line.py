"""A case that has ended, as the fields of one line of the history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.model.case_outcome import ENDS
from reconciler.model.codec import decoded, encoded
from reconciler.model.ended_case import EndedCase

EVENT = "case"
"""The `event` of such a line in a log."""

_NULL_IF_UNKNOWN = (
    "announced",
    "notBefore",
    "planned",
    "started",
    "drained",
    "gone",
    "uncordoned",
    "podsMoved",
    "podsLeft",
)


def to_fields(case: EndedCase) -> dict[str, Any]:
    """Return the case as the fields of its line; moments are RFC 3339 in UTC, None is unknown."""
    more = {"kind": case.kind or None, "inTime": case.outcome.in_time.value}
    return {**dict.fromkeys(_NULL_IF_UNKNOWN), **encoded(case), **more}


def from_fields(fields: Mapping[str, Any]) -> EndedCase:
    """Return the case that the fields of a line describe; other fields are ignored.

    `inTime` is among those: it follows from the outcome, also in a line of an earlier version.

    Raises ValueError, which names the field, if one is missing or has a wrong value.
    """
    known = {key: value for key, value in fields.items() if value is not None}
    case = decoded(EndedCase, {"kind": "", **known})
    if case.outcome not in ENDS:
        raise ValueError(f"outcome: {case.outcome.value!r} is not one of {', '.join(ENDS)}")
    return case
