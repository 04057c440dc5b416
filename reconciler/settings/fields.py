"""The types of single values in the settings file, what each allows, and what all sections have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, PlainValidator, Strict, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from reconciler import plugins
from reconciler.calendar.values import (
    Limit,
    TimeOfDay,
    literal,
    near,
    parse_days,
    parse_duration,
    parse_limit,
    parse_time_or_moment,
    parse_zone,
)
from reconciler.model.content import REFERENCE, Secret
from reconciler.model.limits import is_object_name
from reconciler.model.selector import KEY, VALUE, LabelSelector, Operator, Requirement
from reconciler.settings.mistakes import Mistake, Mistakes

_LABEL_VALUE = re.compile(VALUE)
_LABEL_KEY = re.compile(KEY)

# The operators of metav1.LabelSelector.
_OPERATORS = (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)


def parse_selector(value: object) -> LabelSelector:
    """Parse `{label: value}`, or Kubernetes' `{matchLabels, matchExpressions}`.

    Raises Mistakes, or ValueError if it is not a mapping.
    """
    if isinstance(value, LabelSelector):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"{literal(value)} is not a mapping of labels to values")
    mistakes: list[Mistake] = []
    full = bool(value) and set(value) <= {"matchLabels", "matchExpressions"}
    if full and any(isinstance(part, str) for part in value.values()):
        full = False  # a label may be called matchLabels
    if not full:
        requirements = _equalities(value, (), mistakes)
    else:
        labels, expressions = value.get("matchLabels"), value.get("matchExpressions")
        requirements = []
        if isinstance(labels, Mapping):
            requirements += _equalities(labels, ("matchLabels",), mistakes)
        elif labels is not None:
            mistakes.append(Mistake(("matchLabels",), f"{literal(labels)} is not a mapping"))
        if isinstance(expressions, list):
            for index, expression in enumerate(expressions):
                requirements += _expression(expression, ("matchExpressions", index), mistakes)
        elif expressions is not None:
            mistakes.append(Mistake(("matchExpressions",), f"{literal(expressions)} is not a list"))
    if mistakes:
        raise Mistakes(tuple(mistakes))
    return LabelSelector(tuple(requirements))


def _wrong_key(key: str) -> str:
    return "" if _LABEL_KEY.fullmatch(key) else f"{key!r} is not a valid label key"


def _wrong_value(value: object) -> str:
    if not isinstance(value, str):
        # `gpu: true` is a boolean, and label values are text.
        hint = "write it in quotes" if value is not None else "this one is empty"
        return f"a label value is text; {hint}" + ("" if value is None else f': "{literal(value)}"')
    return "" if _LABEL_VALUE.fullmatch(value) else f"{literal(value)} is not a valid label value"


def _equalities(
    labels: Mapping[object, object], path: tuple[str, ...], mistakes: list[Mistake]
) -> list[Requirement]:
    requirements = []
    for key, value in labels.items():
        wrong = _wrong_key(str(key)) or _wrong_value(value)
        if wrong:
            mistakes.append(Mistake((*path, str(key)), wrong))
        else:
            requirements.append(Requirement(str(key), Operator.IN, (str(value),)))
    return requirements


def _expression(value: object, path: tuple[str | int, ...], mistakes: list[Mistake]) -> list[Requirement]:
    if not isinstance(value, Mapping):
        mistakes.append(Mistake(path, f"{literal(value)} is not a mapping of key, operator and values"))
        return []
    before = len(mistakes)
    for name in value:
        if name not in ("key", "operator", "values"):
            hint = near(str(name), ["key", "operator", "values"])
            mistakes.append(Mistake((*path, str(name)), f"unknown key{hint}"))
    key, operator, values = value.get("key"), value.get("operator"), value.get("values") or []
    if not isinstance(key, str) or _wrong_key(key):
        mistakes.append(Mistake((*path, "key"), f"{literal(key)} is not a valid label key"))
    if operator not in _OPERATORS:
        hint = near(str(operator), list(_OPERATORS))
        message = f"{literal(operator)} is not one of {', '.join(_OPERATORS)}{hint}"
        mistakes.append(Mistake((*path, "operator"), message))
    elif not isinstance(values, list) or any(_wrong_value(each) for each in values):
        mistakes.append(Mistake((*path, "values"), "is not a list of texts"))
    elif bool(values) is not (operator in (Operator.IN, Operator.NOT_IN)):
        message = "takes no values" if values else "needs values"
        mistakes.append(Mistake((*path, "values" if values else "operator"), f"{operator} {message}"))
    if len(mistakes) > before:
        return []
    return [Requirement(str(key), Operator(str(operator)), tuple(str(each) for each in values))]


def for_nodes(selector: LabelSelector) -> str:
    """Return the end of a sentence about the nodes that it selects; empty for all nodes."""
    return "" if selector.selects_all else f", on nodes with {selector}"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{literal(value)} is not text; write it in quotes")
    if not value.strip():
        raise ValueError("is empty")
    return value


_CLUSTER_ID = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ContainerService/managedClusters/[^/]+",
    re.IGNORECASE,
)


def _cluster_id(value: object) -> str:
    text = _text(value)
    if not _CLUSTER_ID.fullmatch(text):
        raise ValueError(
            f"{literal(value)} is not the resource ID of a managed cluster; "
            "`az aks show --query id` prints it"
        )
    return text


def _prefix(value: object) -> str:
    text = _text(value)
    label = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
    if len(text) > 253 or not re.fullmatch(rf"{label}(?:\.{label})*", text):
        raise ValueError(f"{literal(text)} is not a DNS name in lower case, like node-maintenance.dev")
    return text


def _object_name(value: object) -> str:
    text = _text(value)
    if not is_object_name(text):
        raise ValueError(f"{literal(text)} is not a name of an object in Kubernetes")
    return text


@cache
def _read_by_sources() -> Mapping[str, str]:
    """Return the key of the source that reads a node condition as an event, by its type, casefolded."""
    sections = (section for module in plugins.modules("settings") for section in module.SECTIONS)
    return {
        one.casefold(): f"{section.below}.{to_camel(section.key)}"
        for section in sections
        for one in getattr(section, "reads_conditions", ())
    }


def _condition_type(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9./_-]{0,314}[A-Za-z0-9])?", text):
        raise ValueError(f"{literal(text)} is not the type of a node condition")
    if text.casefold() == "ready":
        raise ValueError(
            "Ready can't be named: Kubernetes itself evicts the pods of a node that is not Ready, and Ready "
            "is True on healthy nodes"
        )
    if source := _read_by_sources().get(text.casefold()):
        # One event would be two: one with a deadline, and one without it that never starts by itself.
        raise ValueError(f"{source} reads {text} as an event; write what to do in `events`, by its kind")
    return text


def _positive(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{literal(value)} is not a whole number of at least 1")
    return value


def _namespaces(value: object) -> tuple[str, ...] | LabelSelector:
    if isinstance(value, list | tuple):
        return tuple(_text(name) for name in value)
    return parse_selector(value)


_LONGEST_SECRET = 4096
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_URL = re.compile(
    r"https?://(?:[^\s/?#@]*@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:[/?#]\S*)?"
)
LINK_LOCAL = "169.254."
"""The first characters of link-local addresses, at which clouds serve credentials."""


def _secret(value: object) -> Secret:
    # No message repeats the value.
    if isinstance(value, Secret):
        return value
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is not text; write it in quotes, or name it like ${NAME} or ${file:/path}")
    if len(value) > _LONGEST_SECRET:
        raise ValueError(f"is longer than {_LONGEST_SECRET} characters")
    if "${" in REFERENCE.sub("", value):
        raise ValueError("has a reference that can't be read; write it like ${NAME} or ${file:/path}")
    return Secret(value)


def _url(value: object) -> Secret:
    secret = _secret(value)
    if secret.is_written_out:
        check_url(secret.text)
    return secret


def check_url(text: str) -> None:
    """Raise ValueError, without the text, if it is not a URL that notices may be sent to."""
    found = _URL.fullmatch(text)
    if found is None:
        raise ValueError("is not a URL; write it like https://example.com/path")
    if found["host"].startswith(LINK_LOCAL):
        raise ValueError("is a link-local address, where clouds serve credentials; nothing is sent there")


def _header(value: object) -> str:
    if not isinstance(value, str) or not _HEADER.fullmatch(value):
        raise ValueError(f"{literal(value)} is not the name of an HTTP header")
    return value


def _host(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9.:_-]{1,253}", value):
        raise ValueError(f"{literal(value)} is not the name of a server")
    if value.startswith(LINK_LOCAL):
        raise ValueError("is a link-local address, where clouds serve credentials; nothing is sent there")
    return value


def is_address(text: str) -> bool:
    """Whether a text can be the address of one person; it has no characters that begin another header."""
    return re.fullmatch(r"[^\s<>,;:\"()\\@]{1,64}@[A-Za-z0-9.-]{1,253}", text) is not None


_DURATION = {"type": ["string", "integer"], "pattern": "^(0|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"}
TEXT = {"type": "string", "minLength": 1}
_SELECTOR = {
    "anyOf": [
        {"type": "object", "additionalProperties": {"type": "string"}},
        {
            "type": "object",
            "properties": {
                "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
                "matchExpressions": {"type": "array", "items": {"type": "object"}},
            },
            "additionalProperties": False,
        },
    ]
}
_DAYS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "integer"]}}]}

Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Duration = Annotated[timedelta, PlainValidator(parse_duration), WithJsonSchema(_DURATION)]
Text = Annotated[str, PlainValidator(_text), WithJsonSchema(TEXT)]
Zone = Annotated[ZoneInfo, PlainValidator(parse_zone), WithJsonSchema(TEXT)]
Selector = Annotated[LabelSelector, PlainValidator(parse_selector), WithJsonSchema(_SELECTOR)]
Days = Annotated[frozenset[int], PlainValidator(parse_days), WithJsonSchema(_DAYS)]
TimeOrMoment = Annotated[
    TimeOfDay | datetime, PlainValidator(parse_time_or_moment), WithJsonSchema({"type": "string"})
]
Share = Annotated[
    Limit, PlainValidator(parse_limit), WithJsonSchema({"type": ["integer", "string"], "minimum": 0})
]
Count = Annotated[int, PlainValidator(_positive), WithJsonSchema({"type": "integer", "minimum": 1})]
ClusterId = Annotated[str, PlainValidator(_cluster_id), WithJsonSchema(TEXT)]
ObjectName = Annotated[str, PlainValidator(_object_name), WithJsonSchema(TEXT)]
Prefix = Annotated[str, PlainValidator(_prefix), WithJsonSchema(TEXT)]
ConditionType = Annotated[str, PlainValidator(_condition_type), WithJsonSchema(TEXT)]
Namespaces = Annotated[
    tuple[str, ...] | LabelSelector,
    PlainValidator(_namespaces),
    WithJsonSchema({"anyOf": [{"type": "array", "items": TEXT}, _SELECTOR]}),
]
SecretText = Annotated[Secret, PlainValidator(_secret), WithJsonSchema(TEXT)]
Url = Annotated[Secret, PlainValidator(_url), WithJsonSchema(TEXT)]
Header = Annotated[str, PlainValidator(_header), WithJsonSchema(TEXT)]
Host = Annotated[str, PlainValidator(_host), WithJsonSchema(TEXT)]


def fields_of(section: BaseModel) -> dict[str, Any]:
    """Return the value of each key that has one, by its name in the file."""
    found = {str(one.alias): getattr(section, name) for name, one in type(section).model_fields.items()}
    return {key: value for key, value in found.items() if value is not None}


class Section(BaseModel):
    """A mapping in the file. Unknown keys are mistakes. An empty section has all its defaults."""

    model_config = ConfigDict(
        # A section that no file is checked against is never built: commands start faster.
        defer_build=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        arbitrary_types_allowed=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _without_empty_sections(cls, data: Any) -> Any:
        """Drop `budget:` with nothing below it, as Kubernetes does. All its keys may be commented out."""
        if data is None:
            return {}
        if not isinstance(data, dict) or None not in data.values():
            return data
        sections = {
            field.alias
            for field in cls.model_fields.values()
            if isinstance(
                field.get_default(call_default_factory=True), Section | tuple | dict | LabelSelector
            )
        }
        return {key: value for key, value in data.items() if value is not None or key not in sections}
