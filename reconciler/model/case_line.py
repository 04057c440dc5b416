"""A case that has ended, as the fields of one line of the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from reconciler.model import limits
from reconciler.model.case_outcome import ENDS
from reconciler.model.ended_case import CasePlace, CaseTimes, EndedCase
from reconciler.model.moments import from_text, to_text

EVENT = "case"
"""The `event` of such a line in a log."""

Choice = TypeVar("Choice", bound=StrEnum)


def to_fields(case: EndedCase) -> dict[str, Any]:
    """Return the case as the fields of its line; moments are RFC 3339 in UTC."""
    place, times = case.place, case.times
    return {
        "kind": case.kind or None,
        "sources": list(case.sources),
        "node": place.node,
        "uid": place.uid,
        "zone": place.zone,
        "pool": place.pool,
        "caseStart": to_text(times.case_start),
        "announced": _moment_out(times.announced),
        "notBefore": _moment_out(times.not_before),
        "planned": _moment_out(times.planned),
        "started": _moment_out(times.started),
        "drained": _moment_out(times.drained),
        "gone": _moment_out(times.gone),
        "uncordoned": _moment_out(times.uncordoned),
        "ended": to_text(times.ended),
        "podsMoved": case.pods_moved,
        "podsLeft": case.pods_left,
        "outcome": case.outcome.value,
        "inTime": case.outcome.in_time.value,
        "why": case.why,
        "people": list(case.people),
    }


def from_fields(fields: Mapping[str, Any]) -> EndedCase:
    """Return the case that the fields of a line describe; other fields are ignored.

    `inTime` is among those: it follows from the outcome, also in a line of an earlier version.

    Raises ValueError, which names the field, if one is missing or has a wrong value.
    """
    return EndedCase(
        place=CasePlace(*(_text(fields, key) for key in ("node", "uid", "zone", "pool"))),
        times=CaseTimes(
            case_start=_moment(fields, "caseStart"),
            ended=_moment(fields, "ended"),
            announced=_moment_or_none(fields, "announced"),
            not_before=_moment_or_none(fields, "notBefore"),
            planned=_moment_or_none(fields, "planned"),
            started=_moment_or_none(fields, "started"),
            drained=_moment_or_none(fields, "drained"),
            gone=_moment_or_none(fields, "gone"),
            uncordoned=_moment_or_none(fields, "uncordoned"),
        ),
        kind=_text(fields, "kind") if fields.get("kind") is not None else "",
        sources=_texts(fields, "sources", limits.NAME),
        outcome=_choice(ENDS, fields, "outcome"),
        why=_text(fields, "why", limits.TEXT),
        pods_moved=_count(fields, "podsMoved"),
        pods_left=_count(fields, "podsLeft"),
        # A line of an earlier version has none.
        people=_texts(fields, "people", limits.TEXT) if "people" in fields else (),
    )


def _moment_out(moment: datetime | None) -> str | None:
    return to_text(moment) if moment is not None else None


def _text(fields: Mapping[str, Any], key: str, most: int = limits.NAME) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is {limits.excerpt(value)}, and not a text")
    return limits.text(value, most)


def _texts(fields: Mapping[str, Any], key: str, most: int) -> tuple[str, ...]:
    found = fields.get(key)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError(f"{key} is {limits.excerpt(found)}, and not a list of texts")
    return tuple(limits.text(one, most) for one in found[: limits.EVENTS])


def _moment(fields: Mapping[str, Any], key: str) -> datetime:
    text = _text(fields, key)
    try:
        return from_text(text)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error


def _moment_or_none(fields: Mapping[str, Any], key: str) -> datetime | None:
    return None if fields.get(key) is None else _moment(fields, key)


def _count(fields: Mapping[str, Any], key: str) -> int | None:
    if fields.get(key) is None:
        return None
    try:
        return limits.count(fields[key])
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error


def _choice(choices: Sequence[Choice], fields: Mapping[str, Any], key: str) -> Choice:
    found = next((one for one in choices if one == fields.get(key)), None)
    if found is None:
        known = ", ".join(choices)
        raise ValueError(f"{key} is {limits.excerpt(fields.get(key))}, and not one of {known}")
    return found
