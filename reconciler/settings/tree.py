"""Walks the schema: every key that a settings file may have."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Any, get_args, get_origin

from msgspec import Struct
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reconciler.settings.mistakes import Path


class Key(Struct, frozen=True):
    """A key and its path. In the path, `*` is a name that the user chooses, and `[]` a list entry."""

    path: tuple[str, ...]
    field: FieldInfo

    @property
    def name(self) -> str:
        """The path as text: `windows[].start`, `conditions.*.for`."""
        return ".".join(self.path).replace(".[]", "[]")


def keys(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[Key]:
    """Yield every key below a section. A section comes before its own keys."""
    for field in model.model_fields.values():
        here = (*path, str(field.alias))
        yield Key(here, field)
        below, step = _section(field)
        if below is not None:
            yield from keys(below, (*here, *step))


def keys_at(model: type[BaseModel], path: Path) -> list[str]:
    """Return the keys of the section at a path of a file. Empty if the path is not a section."""
    current: type[BaseModel] | None = model
    rest = list(path)
    while rest and current is not None:
        name = rest.pop(0)
        field = next((each for each in current.model_fields.values() if each.alias == name), None)
        if field is None:
            return []
        current, step = _section(field)
        rest = rest[len(step) :]
    return [str(field.alias) for field in current.model_fields.values()] if current is not None else []


def _section(field: FieldInfo) -> tuple[type[BaseModel] | None, tuple[str, ...]]:
    """Return the section that a field holds, and the path step into it: none, `[]` or `*`."""
    return _section_of(field.annotation)


def _section_of(annotation: Any) -> tuple[type[BaseModel] | None, tuple[str, ...]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ()
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is UnionType:
        found = (_section_of(each) for each in arguments)
        return next((each for each in found if each[0] is not None), (None, ()))
    if origin is tuple and arguments:
        return _section_of(arguments[0])[0], ("[]",)
    if origin is dict:
        return _section_of(arguments[1])[0], ("*",)
    return None, ()
