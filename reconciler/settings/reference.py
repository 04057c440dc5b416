"""Writes docs/settings.md from the schema, so that each key is described in one place.

The page has two parts. The introduction above the marker is written by hand, in the page itself. All that
follows the marker is generated. `python -m reconciler.settings.reference docs/settings.md` updates it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from zoneinfo import ZoneInfo

from pydantic import BaseModel

from reconciler.calendar.values import Limit, TimeOfDay, format_duration
from reconciler.model.event import Kind
from reconciler.model.record import State
from reconciler.model.secret import Secret
from reconciler.model.selector import LabelSelector
from reconciler.settings.policies import CONDITION_DEFAULT, DEFAULTS, EventPolicy
from reconciler.settings.schema import Settings
from reconciler.settings.sections.meanings import ConditionMeaning, EventMeaning
from reconciler.settings.sections.notify import Matcher
from reconciler.settings.sections.workflows import Chain
from reconciler.settings.tree import Key, keys

MARKER = "<!-- Generated from reconciler/settings: run `nox -s docs`, do not edit below this line. -->"

_TYPES: dict[object, str] = {
    bool: "`true` or `false`",
    int: "whole number",
    str: "text",
    timedelta: "duration",
    datetime: "moment",
    TimeOfDay: "time of day",
    ZoneInfo: "IANA time zone",
    Limit: "limit",
    LabelSelector: "selector",
    frozenset[int]: "days",
    Chain: "names joined by `&&`",
    dict[str, Any]: "mapping",
    Matcher: "matcher",
    Secret: "text, which may name secrets: `${NAME}`, `${file:/path}`",
}

_COLUMNS = ("drain", "minDuration", "leadTime", "outsideWindow", "emptyDir", "unmanagedPods")


def update(page: str) -> str:
    """Return the page with its generated part replaced. Raises ValueError if it has no marker line."""
    introduction, marker, _ = page.partition(MARKER)
    if not marker:
        raise ValueError(f"the page has no line {MARKER!r}")
    return introduction + marker + "\n\n" + "\n\n".join(_blocks()) + "\n"


def _blocks() -> Iterator[str]:
    headed = set()
    for key in keys(Settings):
        name = _heading(key.name)
        if name is None or name in headed:
            continue
        headed.add(name)
        described, default = _description(key)
        yield f"{'#' * min(name.count('.') + 2, 3)} `{name}`"
        if name == "events.<Kind>":
            yield f"The settings of one kind of event: {_listed(Kind)}. Keys left out have their defaults."
        elif name == "profiles.profiles[].<state>":
            yield f"What happens in one state: {_listed(State)}."
        else:
            yield described
        if kind := _type(key.field.annotation):
            yield f"- Type: {kind}\n- Default: {default}"
        if name == "events":
            yield from _kinds()


def _heading(name: str) -> str | None:
    """Return the heading of a key. None: it has none, because an override repeats keys that stand above."""
    if re.match(r"overrides\[\]\.(events|conditions)\.", name):
        return None
    name = re.sub(rf"^events\.({'|'.join(Kind)})\b", "events.<Kind>", name)
    name = re.sub(rf"^(profiles\.profiles\[\])\.({'|'.join(State)})\b", r"\1.<state>", name)
    return name.replace("conditions.*", "conditions.<Type>")


def _description(key: Key) -> tuple[str, str]:
    """Return what a key is, with links to other pages, and its default."""
    described, _, default = (key.field.description or "").partition(" Default: ")
    described = re.sub(r"\bdocs/([a-z]+\.md)(#[\w-]+)?", r"[\1](\1\2)", described)
    if key.path[:2] == ("conditions", "*") and len(key.path) > 2:
        default = f"`{_of_policy(CONDITION_DEFAULT, key.path[2])}`"
    if key.field.is_required():
        default = "none, the key is required"
    return described, default.removesuffix(".") or f"`{_value(key.field.default)}`"


def _of_policy(policy: EventPolicy, alias: str) -> str:
    """Return what a policy says for the key with this alias."""
    fields = {**EventMeaning.model_fields, **ConditionMeaning.model_fields}
    (name,) = (name for name, field in fields.items() if field.alias == alias)
    return _value(getattr(policy, name))


def _value(value: Any) -> str:
    """Write a default as a settings file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return str(value)


def _type(annotation: Any) -> str:
    """Describe the values of a key; empty for a section, whose keys have headings of their own."""
    if annotation in _TYPES:
        return _TYPES[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin in (Union, UnionType):
        return ", or ".join(filter(None, (_type(each) for each in arguments if each is not type(None))))
    if origin is tuple:
        return f"list of {_type(arguments[0])}" if _type(arguments[0]) else "list"
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return f"one of {_listed(annotation)}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return ""
    raise TypeError(f"add {annotation} to the types of the reference")


def _listed(choices: type[StrEnum]) -> str:
    return ", ".join(f"`{each}`" for each in choices)


def _kinds() -> Iterator[str]:
    """Write the table of the defaults that differ from kind to kind."""
    yield "The defaults of the kinds:"
    rows = [("Kind", *_COLUMNS), ("---",) * (len(_COLUMNS) + 1)]
    rows += [
        (kind, *(_of_policy(policy, column) for column in _COLUMNS)) for kind, policy in DEFAULTS.items()
    ]
    yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
    yield "The columns after `drain` apply once the kind is drained."


if __name__ == "__main__":
    written = Path(sys.argv[1])
    written.write_text(update(written.read_text(encoding="utf-8")), encoding="utf-8")
