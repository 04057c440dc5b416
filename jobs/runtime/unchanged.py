"""Whether two looks at a cluster have found the same, although time has passed between them."""

from __future__ import annotations

import re
from datetime import timedelta

from reconciler.model.moments import from_text
from reconciler.report.values import Document

CUT = timedelta(seconds=1)
"""Moments in documents are cut to whole seconds, each for itself."""

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")


def is_unchanged(before: Document, after: Document) -> bool:
    """Whether two documents say the same, each about the moment `at` (RFC 3339) of its own look.

    A moment that has moved with `at`, such as the planned start of a drain that may start now, is no change.
    Neither is when the settings were loaded: each look loads them.
    """
    moved = from_text(after["at"]) - from_text(before["at"])
    return _same(_timeless(before), _timeless(after), moved)


def _timeless(document: Document) -> Document:
    settings = document["settings"]
    return {**document, "settings": settings and {**settings, "loadedAt": None, "ageSeconds": None}}


def _same(before: object, after: object, moved: timedelta) -> bool:
    if before == after:
        return True
    if isinstance(before, str) and isinstance(after, str):
        return _same_words(_MOMENT.split(before), _MOMENT.split(after), moved)
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_same(before[key], after[key], moved) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(
            _same(one, other, moved) for one, other in zip(before, after, strict=True)
        )
    return False


def _same_words(before: list[str], after: list[str], moved: timedelta) -> bool:
    """Whether two texts say the same, of each of which every second part is a moment."""
    return before[::2] == after[::2] and all(
        one == other or _moved(one, other, moved)
        for one, other in zip(before[1::2], after[1::2], strict=True)
    )


def _moved(before: str, after: str, moved: timedelta) -> bool:
    try:
        return abs(from_text(after) - from_text(before) - moved) <= CUT
    except ValueError:
        # A text from outside may only look like a moment.
        return False
