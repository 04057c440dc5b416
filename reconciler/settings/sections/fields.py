"""The types of single values in the settings file, and the values that each allows."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import PlainValidator, Strict, WithJsonSchema

from reconciler.calendar.values import (
    Limit,
    TimeOfDay,
    literal,
    parse_days,
    parse_duration,
    parse_limit,
    parse_time_or_moment,
    parse_zone,
)
from reconciler.model.limits import is_object_name
from reconciler.model.machine import CONDITIONS
from reconciler.model.secret import REFERENCE, Secret
from reconciler.model.selector import LabelSelector
from reconciler.settings.selectors import parse_selector


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


_READ_BY_A_SOURCE = {one.casefold() for one in CONDITIONS}


def _condition_type(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9./_-]{0,314}[A-Za-z0-9])?", text):
        raise ValueError(f"{literal(text)} is not the type of a node condition")
    if text.casefold() == "ready":
        # Ready is True on healthy nodes, so it would drain every one of them.
        raise ValueError(
            "Ready is True on healthy nodes; name a condition that is True when something is wrong"
        )
    if text.casefold() in _READ_BY_A_SOURCE:
        # One event would be two: one with a deadline, and one without it that never starts by itself.
        raise ValueError(
            f"sources.nodeConditions reads {text} as an event; write what to do in `events`, by its kind"
        )
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


_DURATION = {
    "type": ["string", "integer"],
    "pattern": "^(0|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$",
}
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
