"""One line of a log: valid JSON in UTF-8 and of limited length, whatever its texts contain.

Small processes import this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import io
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum

from jobs.runtime.unblocked import unblock
from reconciler.model.limits import count_of, escaped_json
from reconciler.model.moments import to_micro_text

LARGEST_LINE = 16_000
"""Bytes. Container runtimes cut longer lines at 16 KiB, and half a line is no JSON."""

LARGEST_TRACEBACK = 4_000
"""Characters of a traceback that are kept: the last ones, because they name the error."""

# Texts of so many characters, lists of so many items. The first pair that gives a short enough line is used.
_LIMITS = ((4_096, 100), (512, 50), (128, 10), (32, 4))
_TOP = 40
_DEEPEST = 6
_WIDEST_NUMBER = 63
_SURROGATES = re.compile("[\ud800-\udfff]")


def to_line(fields: Mapping[str, object]) -> str:
    """Return the fields as one JSON object on one line, without the line break; it never raises.

    A lone surrogate becomes U+FFFD. Texts and lists that are too long are cut, and end with `…`.
    """
    for text, items in _LIMITS:
        line = _encoded({key: _safe(value, text, items, 1) for key, value in _first(fields.items(), _TOP)})
        if len(line.encode()) <= LARGEST_LINE:
            return line
    # So deep, a list is left out as a whole.
    deepest = _DEEPEST + 1
    return _encoded({key: _safe(value, 32, 0, deepest) for key, value in _first(fields.items(), _TOP)})


def begin_log(least: Level | None = None) -> None:
    """Let a log on standard output block nobody, write UTF-8 in every locale, and no line below a level.

    `least` is that level, None for all. What cannot be encoded is replaced. Standard error blocks nobody
    either: Python writes there, too.
    """
    _below.clear()
    _below.update(_LEVELS[: _LEVELS.index(least)] if least is not None else ())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    unblock(("stdout",), lambda lines: log_line(LogEvent.LINES_DROPPED, Level.WARNING, lines=lines))
    unblock(("stderr",), lines_dropped)


def lines_dropped(lines: int) -> str:
    """Return the line for a person that says how many were dropped."""
    return f"warning: {count_of(lines, 'line', 'were')} dropped, because nobody read them"


def write_lines(*lines: str) -> None:
    """Write lines to standard output in one piece, so that no line of another thread comes into one of them.

    `print` writes the end of a line on its own. After `begin_log` this waits for nothing.
    """
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _encoded(fields: Mapping[str, object]) -> str:
    clean = {_text(key, 64): value for key, value in fields.items()}
    return escaped_json(json.dumps(clean, ensure_ascii=False, allow_nan=False))


def _first(items: Iterable[tuple[object, object]], limit: int) -> list[tuple[str, object]]:
    return [(_plain(key), value) for (key, value), _ in zip(items, range(limit), strict=False)]


def _safe(value: object, text: int, items: int, depth: int) -> object:
    """Return the value as JSON can have it, with each text and list cut to its limit."""
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, text)
        case int():
            wide = value.bit_length() > _WIDEST_NUMBER
            return f"a number of {value.bit_length()} bits" if wide else int(value)
        case float():
            return float(value) if math.isfinite(value) else str(value)
        case Mapping() | list() | tuple() | set() | frozenset() if depth > _DEEPEST:
            return "…"
        case Mapping():
            inner = {
                _text(key, text): _safe(one, text, items, depth + 1)
                for key, one in _first(value.items(), items)
            }
            return inner | {"…": len(value) - items} if len(value) > items else inner
        case list() | tuple() | set() | frozenset():
            listed = [_safe(one, text, items, depth + 1) for one, _ in zip(value, range(items), strict=False)]
            return [*listed, "…"] if len(value) > items else listed
        case _:
            return _text(_plain(value), text)


def _text(value: str, limit: int) -> str:
    cut = value if len(value) <= limit else f"{value[: limit - 1]}…"
    return _SURROGATES.sub("\ufffd", cut)


def _plain(value: object) -> str:
    if isinstance(value, str):
        return str(value)
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - a log line must not fail because of what it shows
        return f"a {type(value).__name__} that cannot be shown: {type(error).__name__}"


class LogEvent(StrEnum):
    """What a line is about, as its field `event`; docs/operating.md describes each one.

    A plugin has those of its own beside the rest of it.
    """

    LISTENING = "listening"
    PROBE_FAILED = "probe failed"
    LINES_DROPPED = "log lines dropped"
    NODE = "node"
    FAILED = "failed"
    LATER = "later"
    CASE = "case"
    LEADING = "leading"
    GAVE_BACK = "lock given back"
    TWO_RECONCILERS = "another reconciler acts on the same nodes"
    CLOCKS_DISAGREE = "the clocks of the API servers disagree"
    CLOCKS_AGREE = "the clocks of the API servers agree"
    STANDING_BY = "standing by"
    PASS_FAILED = "pass failed"
    SETTINGS_LOADED = "settings loaded"
    SETTINGS_REJECTED = "settings rejected; previous ones still apply"
    NO_SETTINGS = "settings rejected; there are no earlier ones"
    LESS_GUARDED = "settings guard less"
    ENDING = "ending"
    LAST_READ = "waits to be read once more"
    ENDED = "ended"


class LogField(StrEnum):
    """The fields of the lines, besides those of the report. Moments are RFC 3339 in UTC."""

    AT = "at"
    LEVEL = "level"
    EVENT = "event"
    NODE = "node"
    BECAUSE = "because"
    FAILURES = "failures"
    TRACEBACK = "traceback"
    ADDRESS = "address"
    LOGGER = "logger"
    LINES = "lines"
    ACTION = "action"
    DEADLINE = "deadline"
    DRY_RUN = "dryRun"
    HOLDER = "holder"
    CLUSTER = "cluster"
    MODE = "mode"
    SETTINGS = "settings"
    AGAIN_IN_SECONDS = "againInSeconds"


class Level(StrEnum):
    """How bad it is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


_LEVELS = tuple(Level)
_below: set[str] = set()
"""The levels whose lines are not written."""


def log_line(event: str, level: str = Level.INFO, **fields: object) -> str:
    """Return one line of a log, without its end: `at` (now, UTC), `level`, `event`, then the fields."""
    now = to_micro_text(datetime.now(UTC))
    return to_line({"at": now, "level": str(level), "event": str(event), **fields})


def write_events(event: str, *fields: Mapping[str, object], level: str = Level.INFO) -> None:
    """Write a line about an event for each of these fields, unless the level is below that of the log."""
    if level not in _below:
        write_lines(*(log_line(event, level, **each) for each in fields))
