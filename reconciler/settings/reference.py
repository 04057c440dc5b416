"""What the settings are, from their schema: docs/settings.md, and the JSON Schema for editors.

The page has two parts. The introduction above the marker is written by hand, in the page itself. All that
follows the marker is generated: a heading for each section, and a line for each key. `python -m
reconciler.settings.reference docs/settings.md` updates it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby, takewhile
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from zoneinfo import ZoneInfo

from msgspec import Struct
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from reconciler.calendar.values import Limit, TimeOfDay, format_days, format_duration
from reconciler.model.content import Secret
from reconciler.model.event import Kind
from reconciler.model.record import State
from reconciler.model.selector import LabelSelector
from reconciler.settings.mistakes import Key, keys
from reconciler.settings.policies import (
    CONDITION_DEFAULT,
    DEFAULTS,
    ConditionMeaning,
    EventMeaning,
    EventPolicy,
)
from reconciler.settings.profiles import Chain
from reconciler.settings.schema import whole_settings

MARKER = "<!-- Generated from reconciler/settings: run `nox -s docs`, do not edit below this line. -->"

_TYPES: dict[object, str] = {
    bool: "boolean",
    int: "whole number",
    str: "text",
    timedelta: "duration",
    datetime: "moment",
    TimeOfDay: "time of day",
    ZoneInfo: "time zone",
    Limit: "limit",
    LabelSelector: "selector",
    frozenset[int]: "days",
    Chain: "chain",
    dict[str, Any]: "mapping",
    Kind: "kind",
    Secret: "secret",
}

_MOST_VALUES = 6
"""A list of an enum with more values has the plural of its name, and the page describes it elsewhere."""

_COLUMNS = ("drain", "leadTime", "outsideWindow", "emptyDir", "unmanagedPods")


def update(page: str) -> str:
    """Return the page with its generated part replaced. Raises ValueError if it has no marker line."""
    return regenerated(page, MARKER, "\n\n".join(_blocks()))


def regenerated(page: str, marker: str, text: str) -> str:
    """Return the page with this text behind its marker. Raises ValueError if it has no such line."""
    introduction, line, _ = page.partition(marker)
    if not line:
        raise ValueError(f"the page has no line {marker!r}")
    return f"{introduction}{marker}\n\n{text}\n"


class _Row(Struct, frozen=True):
    """What the page says of one key: its name, type, default and description."""

    name: str
    type: str
    default: str
    text: str

    @property
    def key(self) -> str:
        """The name without the sections around it."""
        return self.name.rpartition(".")[2]

    @property
    def given(self) -> str:
        """The type and the default in brackets. A default in code says the type, and text needs none."""
        clear = self.type == "text" or (self.default.startswith("`") and not self.type.startswith("list"))
        parts = ("" if clear else self.type, self.default)
        return f" ({'; '.join(filter(None, parts))})" if any(parts) else ""


def _blocks() -> Iterator[str]:
    """Write a heading and a list for each section of the file."""
    rows: dict[str, _Row] = {}
    for key in keys(whole_settings()):
        name = _named(key.name)
        if name is not None and name not in rows:
            rows[name] = _row(name, key)
    for section, under in groupby(rows.values(), lambda row: re.split(r"[.[]", row.name)[0]):
        first, *rest = under
        yield f"## `{section}`"
        yield f"{first.text}{first.given}"
        if rest:
            yield "\n".join(_lines(rest, rows))
        if section == "events":
            yield from _kinds()


def _lines(under: Iterable[_Row], rows: Mapping[str, _Row]) -> Iterator[str]:
    """Write a line for each key. Three or more keys that stand above in another section share a line."""
    for (here, there), repeated in groupby(under, lambda row: _twins(row, rows)):
        group = list(repeated)
        if there and len(group) > 2:
            names = []
            for row in group:
                twin = rows[there + row.name.removeprefix(here)]
                names.append(f"`{row.name}`{row.given if row.default != twin.default else ''}")
            yield f"- {', '.join(names)}: as in `{there}`."
        else:
            yield from (f"- `{row.name}`{row.given}: {row.text}" for row in group)


def _twins(row: _Row, rows: Mapping[str, _Row]) -> tuple[str, str]:
    """Return the section of a key, and an earlier one that has the same key with the same description."""
    for other in takewhile(lambda other: other is not row, rows.values()):
        if (other.key, other.text, other.type) == (row.key, row.text, row.type):
            here, there = row.name.split("."), other.name.split(".")
            while here[-1] == there[-1]:
                here.pop()
                there.pop()
            return ".".join(here), ".".join(there)
    return "", ""


def _named(name: str) -> str | None:
    """Return how the page names a key; None for an override's keys, which stand above."""
    if re.match(r"overrides\[\]\.(events|conditions)\.", name):
        return None
    name = re.sub(rf"^events\.({'|'.join(Kind)})\b", "events.<Kind>", name)
    name = re.sub(rf"\.({'|'.join(State)})\b", ".<state>", name)
    return name.replace("conditions.*", "conditions.<Type>")


def _row(name: str, key: Key) -> _Row:
    """Return the row of a key, with links to other pages in its description."""
    text, _, default = (key.field.description or "").partition(" Default: ")
    text = re.sub(r"\bdocs/([a-z]+\.md)(#[\w-]+)?", r"[\1](\1\2)", text)
    kind = _type(key.field.annotation)
    if name == "events.<Kind>":
        text = f"One kind of event: {_listed(Kind)}."
    elif name.endswith(".<state>"):
        text = f"What happens in one state: {_listed(State)}."
    if key.path[:2] == ("conditions", "*") and len(key.path) > 2 and key.path[2] in _of_core():
        default = f"`{_of_policy(CONDITION_DEFAULT, key.path[2])}`"
    elif key.field.is_required():
        default = "required"
    elif not default and kind:
        default = f"`{_value(key.field.get_default(call_default_factory=True))}`"
    default = default.removesuffix(".")
    if kind.startswith("one of ") and all(f"{value}:" in text for value in re.findall(r"`(\w+)`", kind)):
        kind = ""
    return _Row(name, kind, "" if default in ("none", "`[]`", "``") else default, text)


def _of_policy(policy: EventPolicy, alias: str) -> str:
    """Return what a policy says for the key with this alias."""
    return _value(getattr(policy, _of_core()[alias]))


def _of_core() -> Mapping[str, str]:
    """Return the names of the fields of a policy by the keys of the core, whose defaults differ by kind."""
    fields = {**EventMeaning.model_fields, **ConditionMeaning.model_fields}
    return {str(field.alias): name for name, field in fields.items()}


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
        item = arguments[0]
        if isinstance(item, type) and issubclass(item, StrEnum) and len(item) > _MOST_VALUES:
            return f"{item.__name__.lower()}s"
        return f"list of {_type(arguments[0])}" if _type(arguments[0]) else "list"
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return f"one of {_listed(annotation)}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return ""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return annotation.__name__.lower()
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
    yield "The other columns apply once the kind is drained."


if __name__ == "__main__":
    written = Path(sys.argv[1])
    written.write_text(update(written.read_text(encoding="utf-8")), encoding="utf-8")


class _Generator(GenerateJsonSchema):
    def get_default_value(self, schema: Any) -> Any:
        """Return the default of a key; a section is made only when it is asked for."""
        factory = schema.get("default_factory")
        return factory() if factory is not None else super().get_default_value(schema)

    def encode_default(self, dft: Any) -> Any:
        """Return a default in the form that a settings file has."""
        if isinstance(dft, timedelta):
            return format_duration(dft)
        if isinstance(dft, ZoneInfo):
            return dft.key
        if isinstance(dft, Limit):
            return str(dft) if dft.percent else dft.amount
        if isinstance(dft, LabelSelector):
            return {}  # every default selector selects everything
        if isinstance(dft, Secret):
            return dft.text
        if isinstance(dft, frozenset):
            return format_days(dft)
        if isinstance(dft, tuple):
            return [self.encode_default(item) for item in dft]
        if hasattr(dft, "model_fields_set"):
            return {}  # the keys of the section have the defaults
        if isinstance(dft, Struct):
            return str(dft)
        return super().encode_default(dft)


def json_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) with the keys, types, defaults and descriptions of the settings."""
    schema = whole_settings().model_json_schema(by_alias=True, schema_generator=_Generator)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}
