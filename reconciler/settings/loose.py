"""Sections in the form of maintenance-controller, and their fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from msgspec import Struct
from pydantic import (
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from reconciler.calendar.values import TimeOfDay, literal, near, parse_days, parse_time
from reconciler.model import limits
from reconciler.model.limits import is_object_name
from reconciler.settings.fields import Section
from reconciler.settings.mistakes import Mistake, Mistakes, keys_at, mistakes_of, unknown_key
from reconciler.settings.yaml import GoFloat


class LooseSection(Section):
    """A mapping whose unknown keys are kept apart. `reconciler check-config` warns of them.

    One that is like a known key is refused, because what it limits would be lost. Where all keys limit
    something (`only_limits`), so is every other one. `without_effect` are keys that are known to mean nothing
    here: what to say of each, and what to change.
    """

    model_config = ConfigDict(extra="allow")
    only_limits: ClassVar[bool] = False
    without_effect: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType({})

    @model_validator(mode="before")
    @classmethod
    def _without_empty_keys(cls, data: Any) -> Any:
        """Drop keys without a value, such as `value:`, as maintenance-controller does."""
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_limits(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        refused = tuple(cls._lost_limits(data))
        try:
            section = handler(data)
        except ValidationError as error:
            if not refused:
                raise
            others = (mistakes_of(each, partial(keys_at, cls)) for each in error.errors(include_url=False))
            raise Mistakes((*refused, *chain.from_iterable(others))) from error
        if refused:
            raise Mistakes(refused)
        return section

    @classmethod
    def _lost_limits(cls, data: Any) -> Iterator[Mistake]:
        # Pydantic names the unknown keys of sections that forbid them.
        if not isinstance(data, dict) or cls.model_config.get("extra") == "forbid":
            return
        known = sorted(str(field.alias) for field in cls.model_fields.values())
        for key, value in data.items():
            if key in known or value is None or key in cls.without_effect:
                continue
            if cls.only_limits or near(str(key), known):
                yield Mistake((key,), unknown_key(str(key), known))


_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_DURATION = re.compile(rf"(?:(?:{_NUMBER})(?:ns|us|µs|μs|ms|d|h|m|s))+")
_PART = re.compile(rf"({_NUMBER})(ns|us|µs|μs|ms|d|h|m|s)")
_SECONDS = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
_LONGEST = timedelta(days=3650)
_LONGEST_TEXT = 64
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DAY_OF_YEAR = re.compile(r"([A-Za-z]{3,9})\s+([0-9]{1,2})")
_MONTHS = {
    name[:length].lower(): number
    for number, name in enumerate(
        (
            *("January", "February", "March", "April", "May", "June"),
            *("July", "August", "September", "October", "November", "December"),
        ),
        1,
    )
    for length in (3, len(name))
}
_HTTP = re.compile(
    r"https?://(?:[^\s/?#@]+@)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[^\s?#]*)?"
)
_TRUE, _FALSE = ("true", "yes", "on", "y"), ("false", "no", "off", "n")


def parse_go_duration(value: object) -> timedelta:
    """Read a duration as Go's time.ParseDuration does, such as `1h30m` or `200ms`; also days, as `1d`.

    A number counts seconds. Raises ValueError with a message for the author of the file.
    """
    wrong = ValueError(f"{literal(value)} is not a duration; write it like 200ms, 30s, 10m, 4h or 1h30m")
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = Decimal(str(value))
    elif isinstance(value, str):
        text = value.strip()
        if text.startswith("-"):
            raise ValueError(f"{literal(text)} is negative; a duration is 0s or longer")
        text = text.removeprefix("+")
        if text != "0" and (len(text) > _LONGEST_TEXT or not _DURATION.fullmatch(text)):
            raise wrong
        seconds = sum((Decimal(number) * _SECONDS[unit] for number, unit in _PART.findall(text)), Decimal())
    else:
        raise wrong
    if not seconds.is_finite():
        raise wrong
    if seconds < 0:
        raise ValueError(f"{literal(value)} is negative; a duration is 0s or longer")
    if seconds > Decimal(_LONGEST.total_seconds()):
        raise ValueError("is longer than ten years (3650d)")
    return timedelta(microseconds=int(seconds * 1_000_000))


def _text(value: object, most: int = limits.TEXT) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        value = str(value)
    if not isinstance(value, str):
        raise ValueError(f"{literal(value)} is not text")
    if len(value) > most:
        raise ValueError(f"has {len(value)} characters; the limit is {most}")
    return value


def parse_required(value: object, most: int = limits.TEXT) -> str:
    """Read text that is not empty and has at most so many characters. Raises ValueError."""
    text = _text(value, most)
    if not text.strip():
        raise ValueError("is empty")
    return text


def _texts(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else [value]
    if len(items) > limits.EVENTS:
        raise ValueError(f"has {len(items)} entries; the limit is {limits.EVENTS}")
    return tuple(parse_required(item) for item in items)


def _status(value: object) -> str:
    """Read the status of a condition. `status: True` without quotes is a boolean of YAML."""
    text = _text(value).strip()
    for status in ("True", "False", "Unknown"):
        if text.casefold() == status.casefold():
            return status
    raise ValueError(f"{literal(text)} is not one of True, False, Unknown")


def _count(value: object) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        value = int(value)
    if isinstance(value, GoFloat) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limits.COUNT:
        raise ValueError(f"{literal(value)} is not a whole number from 0 to {limits.COUNT}")
    return value


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"{literal(value)} is neither true nor false")


def _some_days(value: object) -> frozenset[int]:
    return frozenset() if value in ([], (), "") else parse_days(value)


class DayOfYear(Struct, frozen=True):
    """A date of every year, or of one year."""

    month: int
    day: int
    year: int | None = None

    def covers(self, day: date) -> bool:
        """Return whether it is this day."""
        return (self.month, self.day) == (day.month, day.day) and self.year in (None, day.year)


def _parse_day_of_year(value: object) -> DayOfYear:
    wrong = ValueError(f"{literal(value)} is not a date; write it like Dec 24, or 2026-12-24 for one year")
    text = value.strip() if isinstance(value, str) else ""
    if found := _DATE.fullmatch(text):
        year, month, day = map(int, found.groups())
    elif found := _DAY_OF_YEAR.fullmatch(text):
        # A leap year, so that Feb 29 is a date.
        year, month, day = 2000, _MONTHS.get(found[1].lower(), 0), int(found[2])
    else:
        raise wrong
    try:
        date(year, month, day)
    except ValueError as error:
        raise wrong from error
    return DayOfYear(month, day, year if "-" in text else None)


def _dates(value: object) -> tuple[DayOfYear, ...]:
    items = value if isinstance(value, list | tuple) else [value]
    if len(items) > 366:
        raise ValueError(f"has {len(items)} entries; the limit is 366")
    return tuple(one if isinstance(one, DayOfYear) else _parse_day_of_year(one) for one in items)


def parse_url(value: object) -> str:
    """Read the URL of a server, without a query. Raises ValueError."""
    text = parse_required(value).strip()
    if not _HTTP.fullmatch(text):
        raise ValueError(f"{literal(text)} is not a URL; write it like http://service.namespace:9090")
    return text


def _object_name(value: object) -> str:
    text = parse_required(value).strip()
    if not is_object_name(text):
        raise ValueError(f"{literal(text)} is no name of a Kubernetes object")
    return text


_ANY_TEXT = {"type": ["string", "number", "boolean"]}
_LIST_OF_TEXT = {"anyOf": [_ANY_TEXT, {"type": "array", "items": _ANY_TEXT}]}

LooseText = Annotated[str, PlainValidator(_text), WithJsonSchema(_ANY_TEXT)]
RequiredText = Annotated[str, PlainValidator(parse_required), WithJsonSchema(_ANY_TEXT)]
StatusText = Annotated[str, PlainValidator(_status), WithJsonSchema(_ANY_TEXT)]
LongText = Annotated[str, PlainValidator(partial(_text, most=limits.MESSAGE)), WithJsonSchema(_ANY_TEXT)]
LongRequiredText = Annotated[
    str, PlainValidator(partial(parse_required, most=limits.MESSAGE)), WithJsonSchema(_ANY_TEXT)
]
LooseTexts = Annotated[tuple[str, ...], PlainValidator(_texts), WithJsonSchema(_LIST_OF_TEXT)]
LooseCount = Annotated[int, PlainValidator(_count), WithJsonSchema({"type": ["integer", "string"]})]
LooseFlag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": ["boolean", "string"]})]
GoDuration = Annotated[
    timedelta, PlainValidator(parse_go_duration), WithJsonSchema({"type": ["string", "number"]})
]
LooseDays = Annotated[frozenset[int], PlainValidator(parse_days), WithJsonSchema(_LIST_OF_TEXT)]
NoneOrDays = Annotated[frozenset[int], PlainValidator(_some_days), WithJsonSchema(_LIST_OF_TEXT)]
Dates = Annotated[tuple[DayOfYear, ...], PlainValidator(_dates), WithJsonSchema(_LIST_OF_TEXT)]
ClockTime = Annotated[TimeOfDay, PlainValidator(parse_time), WithJsonSchema({"type": "string"})]
Url = Annotated[str, PlainValidator(parse_url), WithJsonSchema({"type": "string", "format": "uri"})]
ObjectName = Annotated[str, PlainValidator(_object_name), WithJsonSchema({"type": "string"})]
