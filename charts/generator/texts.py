"""The files of the chart that people read: values.yaml, its JSON Schema, and the table of values."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from charts.generator.values import Values
from reconciler.settings.reference import json_schema, regenerated

MARKER = "<!-- Generated from charts/generator: run `nox -s chart`, do not edit below this line. -->"


def values_yaml(settings: str) -> str:
    """Return values.yaml, with the text `settings` as the default settings."""
    first = "# The values of the chart, with their defaults. Generated: run `nox -s chart`, do not edit.\n"
    return first + "\n".join(_entries(Values(), settings, 0))


def schema_json() -> str:
    """Return the JSON Schema of the values, which has that of the settings in it."""
    schema = Values.model_json_schema(by_alias=True)
    settings = json_schema()
    definitions = {**schema.pop("$defs"), **settings.pop("$defs")}
    del settings["$schema"]
    description = schema["properties"]["settings"]["description"]
    schema["properties"]["settings"] = {"$ref": "#/$defs/Settings", "description": description}
    definitions["Settings"] = settings
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(_untitled(whole), indent=1, ensure_ascii=False) + "\n"


def readme(page: str) -> str:
    """Return the page with its generated part replaced. Raises ValueError if it has no marker line."""
    rows = ["| value | default | meaning |", "|---|---|---|", *_rows(Values(), "")]
    return regenerated(page, MARKER, "\n".join(rows))


def _fields(part: BaseModel) -> Iterator[tuple[str, FieldInfo, Any]]:
    for name, field in type(part).model_fields.items():
        if field.alias != "global":
            yield str(field.alias), field, getattr(part, name)


def _entries(part: BaseModel, settings: str, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for key, field, value in _fields(part):
        text = "".join(
            f"{indent}# {line}\n" for line in textwrap.wrap(str(field.description), 106 - 2 * depth)
        )
        if isinstance(value, BaseModel):
            yield f"{text}{indent}{key}:\n" + "".join(_entries(value, settings, depth + 1))
        elif key == "settings":
            yield f"{text}{indent}{key}:\n{textwrap.indent(settings, '  ')}"
        else:
            yield f"{text}{indent}{key}: {json.dumps(value)}\n"


def _rows(part: BaseModel, above: str) -> Iterator[str]:
    for key, field, value in _fields(part):
        path = f"{above}{key}"
        if isinstance(value, BaseModel):
            yield from _rows(value, f"{path}.")
            continue
        default = "those of `values.yaml`" if path == "settings" else f"`{json.dumps(value)}`"
        yield f"| `{path}` | {default} | {field.description} |"


def _untitled(found: Any, *, names: bool = False) -> Any:
    """Return the schema without titles, which repeat the keys; `names`: the keys are those of values."""
    if isinstance(found, list):
        return [_untitled(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {
        key: _untitled(one, names=not names and key in ("properties", "$defs"))
        for key, one in found.items()
        if names or key != "title" or not isinstance(one, str)
    }
