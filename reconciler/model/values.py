"""Values: copies of them with changes, and JSON documents by their types.

Values are frozen `msgspec.Struct`s. `replace` returns a changed copy of one.
Those that the agent imports are dataclasses, because it uses only the standard library, and have
`dataclasses.replace`.

In a document, a field has its name in camelCase, or the one that its Struct gives it. It is not written where
it is None or has its default, except for `Written`. One that is missing is None or has its default, and other
keys are ignored: so an earlier program reads of a later document what it knows.

What is read has limits: a text is cut to `limits.TEXT`, or to the `max_length` of its `Meta`. A list or a
mapping has at most `limits.EVENTS` items, or as its `Meta` says. A number is a count, at most the `le` of its
`Meta`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache, partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, structs

from reconciler.model import limits
from reconciler.model.moments import from_text, to_text

if TYPE_CHECKING:
    # With this one, mypy checks the names and types of the changes, for Structs too.
    from dataclasses import replace as replace
else:
    from msgspec.structs import replace as replace

Kind = TypeVar("Kind", bound=Struct)
Value = TypeVar("Value")
Items = TypeVar("Items", list[Any], dict[str, Any])

Name = Annotated[str, Meta(max_length=limits.NAME)]
"""A name in Kubernetes."""

Names = Annotated[tuple[str, ...], Meta(max_length=limits.INSTANCES)]
"""Names of what the settings or a cluster may have many of."""

Written = Annotated[Value, "written"]
"""A field that is written with its default, too, because earlier programs need it."""

Flat = Annotated[Value, "flat"]
"""A value whose fields stand among those of the value that has it."""

UnixMoment = Annotated[datetime, "unix"]
"""A moment that is written as Unix time in whole seconds; others are RFC 3339."""


_NO_LIMIT = Meta()
_NAMES: Mapping[type, str] = {dict: "mapping", list: "list", str: "text", bool: "boolean"}


class _Code(Struct, frozen=True):
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


class _Field(Struct, frozen=True):
    name: str
    key: str
    default: Any
    written: bool
    flat: bool
    code: _Code


def encoded(value: Struct) -> dict[str, Any]:
    """Return the document of a value, which has only what JSON has."""
    document: dict[str, Any] = {}
    for field in _fields(type(value)):
        item = getattr(value, field.name)
        if field.flat:
            document |= field.code.write(item)
        elif item is not None and (field.written or item != field.default):
            document[field.key] = field.code.write(item)
    return document


def decoded(kind: type[Kind], document: Any) -> Kind:
    """Return the value that a document describes.

    Raises ValueError, which names the field, for what is missing, has another type, or is beyond a limit.
    """
    return _read(kind, document)


def register(kind: Any, write: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
    """Let values of a type be written and read by these functions instead of by their fields."""
    _CODES[kind] = _Code(write, read)


def _read(kind: type[Kind], document: Any) -> Kind:
    document, given = _checked(dict, document), {}
    for field in _fields(kind):
        if field.flat:
            given[field.name] = field.code.read(document)
            continue
        item = document.get(field.key, field.default)
        if item is NODEFAULT:
            raise ValueError(f"{field.key} is missing")
        try:
            given[field.name] = item if item is field.default else field.code.read(item)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(limits.text(f"{field.key}: {error}")) from error
    return kind(**given)


@lru_cache(maxsize=256)
def _fields(kind: type[Struct]) -> tuple[_Field, ...]:
    return tuple(_field(each) for each in structs.fields(kind))


def _field(field: structs.FieldInfo) -> _Field:
    first, *more = field.name.split("_")
    key = (
        "".join((first, *map(str.capitalize, more))) if field.encode_name == field.name else field.encode_name
    )
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    if default is NODEFAULT and NoneType in get_args(field.type):
        default = None
    marks = get_args(field.type)
    return _Field(field.name, key, default, "written" in marks, "flat" in marks, _code(field.type))


def _code(kind: Any, meta: Meta = _NO_LIMIT) -> _Code:
    """Return how values of a type are written and read; `meta` has their limit."""
    if kind in _CODES:
        return _CODES[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    most = limits.EVENTS if meta.max_length is None else meta.max_length
    if origin is Annotated:
        return _code(arguments[0], next((each for each in arguments if isinstance(each, Meta)), meta))
    if origin in (Union, UnionType):
        return _code(next(each for each in arguments if each is not NoneType), meta)
    if origin is tuple:
        item = _code(arguments[0])
        return _Code(lambda items: list(map(item.write, items)), partial(_read_list, item, most))
    if origin is Mapping:
        item = _code(arguments[1])
        return _Code(partial(_write_mapping, item), partial(_read_mapping, item, most))
    if kind is str:
        longest = meta.max_length or limits.TEXT
        return _Code(str, lambda text: limits.text(_checked(str, text), longest))
    if kind is int:
        return _Code(int, partial(limits.count, most=limits.COUNT if meta.le is None else int(meta.le)))
    if issubclass(kind, Enum):
        return _Code(lambda choice: choice.value, partial(_choice, kind))
    return _Code(encoded, partial(_read, kind))


def _checked(kind: type[Value], value: Any) -> Value:
    if not isinstance(value, kind):
        raise ValueError(f"{limits.excerpt(value)} is not a {_NAMES[kind]}")
    return value


def _at_most(most: int, items: Items) -> Items:
    if len(items) > most:
        raise ValueError(f"{len(items)} items are recorded, and {most} are read")
    return items


def _choice(kind: type[Enum], value: Any) -> Enum:
    try:
        return kind(value)
    except ValueError as error:
        known = ", ".join(str(each.value) for each in kind)
        raise ValueError(f"{limits.excerpt(value)} is not one of {known}") from error


def _read_list(item: _Code, most: int, documents: Any) -> tuple[Any, ...]:
    return tuple(map(item.read, _at_most(most, _checked(list, documents))))


def _write_mapping(item: _Code, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item.write(value) for key, value in values.items()}


def _read_mapping(item: _Code, most: int, documents: Any) -> dict[str, Any]:
    found = _at_most(most, _checked(dict, documents))
    return {limits.text(key): item.read(document) for key, document in found.items()}


def _unix(seconds: int) -> datetime:
    moment = limits.unix_moment(seconds)
    return limits.EARLIEST if moment is limits.UNREADABLE else moment


_CODES: dict[Any, _Code] = {
    bool: _Code(bool, partial(_checked, bool)),
    datetime: _Code(to_text, lambda text: from_text(_checked(str, text))),
    timedelta: _Code(lambda length: int(length.total_seconds()), limits.duration),
    UnixMoment: _Code(lambda moment: int(moment.timestamp()), _unix),
}
