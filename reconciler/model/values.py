"""Values: copies of them with changes, and JSON documents by their types.

Values are frozen `msgspec.Struct`s. `replace` returns a changed copy of one.
Those that the agent imports are dataclasses, because it uses only the standard library, and have
`dataclasses.replace`.

In a document, a field has its name in camelCase, or the one that its Struct gives it. It is not written where
it is None or has its default, except for `Written`. One that is missing is None or has its default, and other
keys are ignored: so an earlier program reads of a later document what it knows.

What is read has limits: a text is cut to `limits.TEXT`, or to the `max_length` of its `Meta`. A list or a
mapping has at most `limits.EVENTS` items, or as its `Meta` says. A number is a count, at most the `le` of its
`Meta`, or from its `ge` on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache, partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, MsgspecError, Struct, ValidationError, convert, defstruct, json, structs

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

Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""Any integer that the API has."""

Labels = Annotated[Mapping[str, Name], Meta(max_length=limits.INSTANCES)]
Annotations = Annotated[
    Mapping[str, Annotated[str, Meta(max_length=limits.ANNOTATION + 1)]], Meta(max_length=limits.INSTANCES)
]
"""The labels and the annotations of an object, as they are kept while it is read."""

Written = Annotated[Value, "written"]
"""A field that is written with its default, too: people and programs read it in the document."""

Flat = Annotated[Value, "flat"]
"""A value whose fields stand among those of the value that has it."""

UnixMoment = Annotated[datetime, "unix"]
"""A moment that is written as Unix time in whole seconds; others are RFC 3339."""


_NO_LIMIT = Meta()
_NAMES: Mapping[type, str] = {dict: "mapping", list: "list", str: "text", bool: "boolean"}


class Code(Struct, frozen=True):
    """How values of a type are written and read.

    `native` is the type with its limits by which msgspec reads the same, None if it can't.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    native: Any = None


class _Field(Struct, frozen=True):
    name: str
    key: str
    default: Any
    written: bool
    flat: bool
    code: Code


def encoded(value: Struct) -> dict[str, Any]:
    """Return the document of a value, which has only what JSON has."""
    return _code_of_fields(type(value)).write(value)  # type: ignore[no-any-return]


def decoded(kind: type[Kind], document: Any) -> Kind:
    """Return the value that a document describes.

    Raises ValueError, which names the field, for what is missing, has another type, or is beyond a limit.
    """
    return _code_of_fields(kind).read(document)  # type: ignore[no-any-return]


def parsed(text: str, most: int = limits.ANNOTATION) -> Any:
    """Return what `limits.loads` does. What msgspec refuses is no text of ours, or cut or explained there."""
    try:
        return json.decode(text) if len(text) <= most else limits.loads(text, most)
    except (MsgspecError, UnicodeEncodeError, RecursionError):
        return limits.loads(text, most)


def register(kind: Any, write: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
    """Let values of a type be written and read by these functions instead of by their fields."""
    _CODES[kind] = Code(write, read)


@lru_cache(maxsize=64)
def code_of(kind: Any) -> Code:
    """Return how values of a type are written and read, also if it is no Struct."""
    return _code(kind)


@lru_cache(maxsize=256)
def _code_of_fields(kind: type[Struct]) -> Code:
    """Return how values of a Struct are written and read, with what does not depend on a value done once."""
    fields = [_field(each) for each in structs.fields(kind)]
    plain = [
        (each.name, each.key, each.default, each.written, each.code.write) for each in fields if not each.flat
    ]
    by_key = {each.key: (each.name, each.default, each.code.read) for each in fields if not each.flat}
    flat = [(each.name, each.code) for each in fields if each.flat]
    absent = {each.name: None for each in fields if each.default is None}
    # What a document must have, in order: the parts of flat values, and fields without a default.
    parts = [
        (each.name, each.code if each.flat else None)
        for each in fields
        if each.flat or each.default is NODEFAULT
    ]
    keys = {each.name: each.key for each in fields}

    def write(value: Struct) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for name, key, default, written, write_item in plain:
            item = getattr(value, name)
            if item is not None and (written or (item is not default and item != default)):
                document[key] = write_item(item)
        for name, code in flat:
            document |= code.write(getattr(value, name))
        return document

    def read(document: Any) -> Struct:
        given: dict[str, Any] = absent.copy()
        # Most fields have their default, so a document has fewer keys than its type has fields.
        for key, item in _checked(dict, document).items():
            if key not in by_key:
                continue
            name, default, read_item = by_key[key]
            try:
                given[name] = item if item is default else read_item(item)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise ValueError(limits.text(f"{key}: {error}")) from error
        for name, code in parts:
            if code is not None:
                given[name] = code.read(document)
            elif name not in given:
                raise ValueError(f"{keys[name]} is missing")
        return kind(**given)

    if not all(each.code.native is not None and not each.flat for each in fields):
        return Code(write, read)
    shape = defstruct(
        kind.__name__,
        [
            (each.name, each.code.native | None if each.default is None else each.code.native, each.default)
            for each in fields
        ],
        rename={each.name: each.key for each in fields},
        kw_only=True,
    )
    return Code(write, _first_by_msgspec(shape, read, lambda found: kind(**structs.asdict(found))))


def _first_by_msgspec(
    native: Any, read: Callable[[Any], Any], made: Callable[[Any], Any] | None = None
) -> Callable[[Any], Any]:
    """Return the reader by msgspec, which is many times as fast. It refuses what `read` cuts or explains."""

    def read_first(document: Any) -> Any:
        try:
            found = convert(document, native)
        except ValidationError:
            return read(document)
        return found if made is None else made(found)

    return read_first


def key_of(field: structs.FieldInfo) -> str:
    """Return the name of a field in a document."""
    if field.encode_name != field.name:
        return field.encode_name
    first, *more = field.name.split("_")
    return "".join((first, *map(str.capitalize, more)))


def _field(field: structs.FieldInfo) -> _Field:
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    if default is NODEFAULT and NoneType in get_args(field.type):
        default = None
    marks = get_args(field.type)
    return _Field(field.name, key_of(field), default, "written" in marks, "flat" in marks, _code(field.type))


def _code(kind: Any, meta: Meta = _NO_LIMIT) -> Code:
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
        return _code_of_items(_code(arguments[0]), most)
    if origin is Mapping:
        return _code_of_mapping(_code(arguments[1]), most)
    if kind is str:
        return _code_of_text(meta.max_length or limits.TEXT)
    if kind is int:
        least = 0 if meta.ge is None else int(meta.ge)
        largest = limits.COUNT if meta.le is None else int(meta.le)
        native = Annotated[int, Meta(ge=least, le=largest)]
        return Code(int, lambda number: limits.count(number, largest, least), native)
    return _code_of_choice(kind) if issubclass(kind, Enum) else _code_of_fields(kind)


def _checked(kind: type[Value], value: Any) -> Value:
    if not isinstance(value, kind):
        raise ValueError(f"{limits.excerpt(value)} is not a {_NAMES[kind]}")
    return value


def _at_most(most: int, items: Items) -> Items:
    if len(items) > most:
        raise ValueError(f"{len(items)} items are recorded, and {most} are read")
    return items


def _code_of_items(item: Code, most: int) -> Code:
    write, read = item.write, item.read

    def write_all(items: Any) -> list[Any]:
        return [write(each) for each in items]

    def read_all(documents: Any) -> tuple[Any, ...]:
        return tuple([read(each) for each in _at_most(most, _checked(list, documents))])

    if item.native is None:
        return Code(write_all, read_all)
    each_native = item.native
    native = Annotated[tuple[each_native, ...], Meta(max_length=most)]  # type: ignore[valid-type]
    return Code(list, _first_by_msgspec(native, read_all), native)


def _code_of_mapping(item: Code, most: int) -> Code:
    write, read, text = item.write, item.read, limits.text

    def write_all(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: write(each) for key, each in values.items()}

    def read_all(documents: Any) -> dict[str, Any]:
        kept = _at_most(most, _checked(dict, documents))
        return {text(key): read(document) for key, document in kept.items()}

    if item.native is None:
        return Code(write_all, read_all)
    key, value = _code_of_text(limits.TEXT).native, item.native
    native = Annotated[dict[key, value], Meta(max_length=most)]  # type: ignore[valid-type]
    return Code(dict, _first_by_msgspec(native, read_all), native)


def _code_of_text(longest: int) -> Code:
    def read(text: Any) -> str:
        if isinstance(text, str) and len(text) <= longest and text.isascii():
            return text
        return limits.text(_checked(str, text), longest)

    return Code(str, read, Annotated[str, Meta(max_length=longest)])


def _code_of_choice(kind: type[Enum]) -> Code:
    by_value = {each.value: each for each in kind}

    def read(value: Any) -> Enum:
        try:
            return by_value[value]
        except (KeyError, TypeError) as error:
            known = ", ".join(map(str, by_value))
            raise ValueError(f"{limits.excerpt(value)} is not one of {known}") from error

    return Code(lambda choice: choice.value, read)


def _unix(seconds: int) -> datetime:
    moment = limits.unix_moment(seconds)
    return limits.EARLIEST if moment is limits.UNREADABLE else moment


_CODES: dict[Any, Code] = {
    bool: Code(bool, partial(_checked, bool), bool),
    datetime: Code(to_text, lambda text: from_text(_checked(str, text))),
    timedelta: Code(lambda length: int(length.total_seconds()), limits.duration),
    UnixMoment: Code(lambda moment: int(moment.timestamp()), _unix),
}
