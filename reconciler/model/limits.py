"""Limits of what comes from outside (moments, durations, texts, names, counts, annotations), and text that
nothing obeys.

Every source, client and reader of an annotation uses these functions where data comes in, so the stages
after it need no limits of their own. Beyond a limit, data is unreadable; it never becomes an exception for
another object. The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Maintenance outside these moments is not meant; inside them, arithmetic never leaves the calendar."""

UNREADABLE = datetime.max.replace(tzinfo=UTC)
"""Stands for a moment that was given and can't be read; a Condition turns it into a mark."""

LONGEST = timedelta(days=366)
"""The longest duration: a year."""

TEXT = 1024
"""Characters of a text: a description, a reason, an error."""

NAME = 253
"""Characters of a name in Kubernetes. Identifiers of events have this limit, too."""

MESSAGE = 4096
"""Characters of a condition's message that are read. The texts inside it have the limit of every text."""

ANNOTATION = 32 * 1024
"""Characters of an annotation that we write or read; the agent's admission policy has the same limit."""

LEDGER = 1 << 20
"""Characters of one text in our own ConfigMap, which as a whole holds no more than 1 MiB."""

LEDGER_PART = LEDGER // 2
"""Characters of what one plugin keeps there."""

EVENTS = 100
"""Events of one node, and of one annotation."""

ENTRIES = 100
"""Profiles of one node, and what was sent about one node by different names."""

ADDRESSES = 5
"""Addresses of one namespace, to which messages about its pods are sent."""

INSTANCES = 1000
"""Instances of one kind in the settings, and profiles."""

HOLDERS = 20
"""Annotations that hold one step of one node, or one pod; and what the settings name of one step."""

COUNT = 1_000_000
"""Attempts, machines and the like."""

CALENDAR = 1_000_000
"""Bytes of the content of a calendar; a ConfigMap holds no more."""

KEPT_CALENDARS = 300_000
"""Characters of the last contents of all calendars in our own ConfigMap, compressed."""

CALENDARS = 100
"""Calendars in the settings."""

LARGEST_SETTINGS = 1 << 20
"""Bytes of a settings file; a ConfigMap holds no more."""

_FIRST_SECOND, _LAST_SECOND = EARLIEST.timestamp(), LATEST.timestamp()
_DIGITS = 18
_MOMENT = 64
_HALF = re.compile("[\ud800-\udfff]")


def moment(value: datetime) -> datetime:
    """Return an aware moment in UTC; ValueError where it is not from 2000 to 2100."""
    # The years first: near the ends of the calendar a conversion to UTC overflows.
    if EARLIEST.year - 1 <= value.year <= LATEST.year + 1:
        found = value if value.tzinfo is UTC else value.astimezone(UTC)
        if EARLIEST <= found <= LATEST:
            return found
    raise ValueError("a time outside of the years 2000 to 2100")


def is_moment(value: datetime) -> bool:
    """Whether an aware moment is from 2000 to 2100."""
    return EARLIEST <= value <= LATEST


# Conditions of thousands of nodes are of the same few minutes.
@lru_cache(maxsize=4096)
def unix_moment(seconds: int) -> datetime:
    """Return the moment of so many seconds since 1970, UTC; UNREADABLE where it is not from 2000 to 2100."""
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        return UNREADABLE
    return datetime.fromtimestamp(seconds, UTC)


def moment_text(value: str) -> str:
    """Return a text that can be a moment; ValueError where it is too long to be one."""
    if len(value) > _MOMENT:
        raise ValueError(f"{len(value)} characters are no time")
    return value


def duration(seconds: float) -> timedelta | None:
    """Return a duration; None where the seconds are negative, no number, or more than a year."""
    if 0 <= seconds <= LONGEST.total_seconds():
        return timedelta(seconds=seconds)
    return None


def count(value: object, most: int = COUNT, least: int = 0) -> int:
    """Return a count from `least` to `most`; ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{excerpt(value)} is not a count from {least} to {most}")
    return value


def number(digits: str) -> int:
    """Return the number that the decimal digits write; ValueError where there are too many of them."""
    if len(digits) > _DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def text(value: str, most: int = TEXT) -> str:
    """Return the text with at most so many characters, and without halves of surrogate pairs."""
    if len(value) > most:
        value = f"{value[: most - 1]}…"
    return value if value.isascii() else whole(value)


def first_of(names: Sequence[str], most: int = 3, *, count: int | None = None) -> str:
    """Return the first names as a list in words, and how many more there are; `count` is how many in all."""
    more = (len(names) if count is None else count) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


_OF_ONE = {"are": "is", "were": "was", "have": "has"}


def count_of(count: int, noun: str, verb: str = "") -> str:
    """Return `1 node` or `2 nodes`, with the `verb` of several also `1 node is` or `2 nodes are`."""
    single = count == 1
    said = f"{count:,} {noun}" if single else f"{count:,} {noun}s"
    return f"{said} {_OF_ONE.get(verb, f'{verb}s') if single else verb}" if verb else said


def excerpt(value: object) -> str:
    """Return a value from outside for a message: its `repr`, at most 100 characters."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Python refuses to write numbers of thousands of digits.
        return repr(value) if abs(value) < 10**_DIGITS else "a number of many digits"
    if isinstance(value, str | bytes):
        return text(repr(value[:200]), 100)
    return (
        text(repr(value), 100) if value is None or isinstance(value, float | bool) else type(value).__name__
    )


def why_unreadable(error: Exception) -> str:
    """Return in words why a document does not have the form that it must have."""
    if isinstance(error, KeyError):
        return f"it has no key {error}"
    words = str(error) if isinstance(error, ValueError) else ""
    return words or "a part of it has another form than expected"


def whole(value: str) -> str:
    """Return the text with U+FFFD for each half of a surrogate pair: no file, log or API takes one."""
    if value.isascii() or _HALF.search(value) is None:
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut_annotation(value: str) -> str:
    """Return what is kept of an annotation while it is read: enough to see that it is too long.

    Raises TypeError for bytes, which a decoder gives for a text that is no UTF-8.
    """
    if not isinstance(value, str):
        raise TypeError("an annotation that is no text")
    return value if len(value) <= ANNOTATION else value[: ANNOTATION + 1]


def loads(value: str, most: int = ANNOTATION) -> Any:
    """Read JSON, an annotation's by default; ValueError for what is broken, too long or nested too deep.

    Halves of surrogate pairs become U+FFFD, and a number of more digits than any we use becomes a float.
    """
    if len(value) > most:
        raise ValueError(f"it is longer than {most} characters")
    try:
        document = json.loads(value, parse_int=json_number)
        return _whole_document(document) if "\\u" in value or not value.isascii() else document
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def json_number(text: str) -> int | float:
    """Return the number that JSON writes like this, a float where it has more digits than any we use.

    As a float it has the same sign and size, and each reader has its own limit for it.
    """
    return int(text) if len(text.lstrip("-")) <= _DIGITS else float(text)


def _whole_document(value: Any) -> Any:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return [_whole_document(one) for one in value]
    if isinstance(value, dict):
        return {whole(key): _whole_document(one) for key, one in value.items()}
    return value


_LONGEST = 253
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def is_object_name(text: str) -> bool:
    """Whether a text is a name that the API server accepts for a workload, a pod or a volume claim.

    This is a DNS subdomain (k8s.io/apimachinery, IsDNS1123Subdomain). The API server does not check the names
    in ownerReferences and in the volumes of a pod, so these can be any text.
    """
    return len(text) <= _LONGEST and _SUBDOMAIN.fullmatch(text) is not None


def quoted(text: str) -> str:
    """Return a name from outside for a message: in quotes, with escapes, and at most as long as a name."""
    return ascii(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def escaped_json(text: str) -> str:
    """Return one line of JSON with a JSON escape for each character that is not printable.

    JSON permits such characters inside a text. A terminal obeys some of them, and others hide what follows.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def without_markup(text: str) -> str:
    """Return the text with `&`, `<` and `>` as entities: in a chat it is no link and no mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
