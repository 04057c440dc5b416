"""What differs between two texts of the settings: the keys at the top and one level below, and each line."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.model import limits
from reconciler.settings.yaml import read_yaml

SHOWN = 10
"""Keys that a sentence names."""

LINES = 10_000
"""Lines of a text that is compared line by line. More of them may take minutes."""

_LONGEST = 80
"""Characters of a key."""


def changed_keys(before: bytes, after: bytes) -> tuple[str, ...]:
    """Return what has become of each key that differs, such as `budget.maxUnavailable changed`.

    It is empty if only comments or the layout differ, and where a text is no mapping.
    """
    return tuple(_changed(_mapping(before), _mapping(after)))


def in_words(changes: tuple[str, ...]) -> str:
    """Return the changes as one sentence, which names ten of them at most."""
    if not changes:
        return "only comments or the layout changed"
    more = f", and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    return ", ".join(changes[:SHOWN]) + more


def unified(before: bytes, after: bytes, names: tuple[str, str]) -> tuple[str, ...]:
    """Return the lines of a unified diff of two texts with these names; none if they are the same.

    Of texts with more than `LINES` lines, it is a line that says so.
    """
    first, second = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    if before != after and max(len(first), len(second)) > LINES:
        return (f"{names[0]} and {names[1]} differ; more than {LINES} lines are not compared one by one",)
    lines = tuple(difflib.unified_diff(first, second, *names, lineterm=""))
    if not lines and before != after:
        return ("only the ends of lines differ",)
    return lines


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key in dict.fromkeys((*before, *after)):
        name = limits.text(f"{above}{key}", _LONGEST)
        if key not in before:
            yield f"{name} added"
        elif key not in after:
            yield f"{name} removed"
        elif before[key] != after[key]:
            first, second = before[key], after[key]
            if above or not (isinstance(first, dict) and isinstance(second, dict)):
                yield f"{name} changed"
            else:
                yield from _changed(first, second, f"{name}.")


def _mapping(content: bytes) -> Mapping[str, Any]:
    value = read_yaml(content.decode("utf-8-sig", "replace")).value
    return {str(key): below for key, below in value.items()} if isinstance(value, dict) else {}
