"""A request of a person or of another program as a source: the annotation `<prefix>/request`.

    {"kind": "Reboot", "notBefore": "2026-11-21T22:00:00Z", "duration": "5m", "id": "CHG-42", "reason": "…",
     "by": "alice@host", "at": "2026-11-21T20:00:00Z"}

Only `kind` is required. The request is valid until its author removes the annotation.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo

from msgspec import Struct

from reconciler.calendar.values import format_duration, parse_ahead
from reconciler.model import limits
from reconciler.model.event import REQUEST, Answer, Kind, Reading, Signal, Status
from reconciler.model.instructions import Word
from reconciler.model.keys import keys_of
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Node
from reconciler.model.values import replace as changed
from reconciler.model.writes import NodeWrite, node_write
from reconciler.passes.instruct import with_end
from reconciler.passes.plugin import Source, SourceContext
from reconciler.settings.schema import Settings
from reconciler.sources.request.settings import SECTION

SOURCE = REQUEST
REQUESTED = "requested"
"""What its author has done."""

KEYS = ("kind", "notBefore", "duration", "id", "reason", "by", "at")
KINDS = tuple(kind for kind in Kind if kind is not Kind.UNKNOWN)
"""What can be requested."""

_BY_NAME = {kind.value.casefold(): kind for kind in KINDS}
# The digits and the unit of a duration. More digits are a mistake, and do not fit into a `timedelta`.
_LONGEST = 9
_NONE = Reading(SOURCE, Answer.NO_EVENT)


class Requests(Source):
    """Requests in an annotation of the node."""

    name = SOURCE
    reports_start = False
    who = "whoever wrote the request"

    def enabled(self, settings: Settings) -> bool:
        """Whether `sources.requests` is on."""
        return SECTION.of(settings).enabled

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return the request, or that there is none."""
        return (read(node, context.settings.keys.prefix),)


SOURCES = (Requests(),)


def read(node: Node, prefix: str) -> Reading:
    """Return the request on a node; one that can't be read is an event of kind Unknown that says why."""
    text = node.annotations.get(keys_of(prefix).request)
    if text is None:
        return _NONE
    try:
        signal = parse(text)
    except ValueError as error:
        signal = Signal(
            SOURCE,
            Kind.UNKNOWN,
            Status.SCHEDULED,
            description=limits.text(f"the request can't be read: {error}"),
        )
    return Reading(SOURCE, Answer.EVENT, (signal,))


def parse(text: str) -> Signal:
    """Read the annotation's text as what its source says; ValueError says what to change."""
    request = _read(text)
    author = f"requested {request.author}" if request.author else ""
    return Signal(
        SOURCE,
        request.kind,
        Status.SCHEDULED,
        not_before=request.not_before,
        duration=request.duration,
        id=request.id,
        description=limits.text(": ".join(words for words in (author, request.reason) if words)),
    )


def _read(text: str) -> Request:
    try:
        document = limits.loads(text)
    except ValueError as error:
        raise ValueError(f'it is not JSON ({error}); write {{"kind":"Reboot"}}') from error
    if not isinstance(document, dict):
        raise ValueError('it is not a JSON object; write {"kind":"Reboot"}')
    strange = sorted(set(document) - set(KEYS))
    if strange:
        raise ValueError(f"unknown key {limits.excerpt(strange[0])}; known are {', '.join(KEYS)}")
    kind = parse_kind(document.get("kind"))
    not_before = at = None
    if document.get("notBefore"):
        try:
            not_before = from_text(_text(document["notBefore"]))
        except ValueError as error:
            raise ValueError(f"notBefore: {error}; write 2026-11-21T22:00:00Z") from error
    # Nothing depends on when it was written.
    with suppress(ValueError):
        at = from_text(_text(document["at"])) if document.get("at") else None
    return Request(
        kind,
        not_before,
        _duration(document.get("duration")),
        limits.text(_text(document.get("id") or ""), limits.NAME),
        limits.text(_text(document.get("reason") or "")),
        limits.text(_text(document.get("by") or ""), limits.NAME),
        at,
    )


def parse_kind(value: object) -> Kind:
    """Return the kind of that name, in any case; ValueError lists what can be requested."""
    kind = _BY_NAME.get(value.casefold()) if isinstance(value, str) else None
    if kind is None:
        raise ValueError(f"kind is {limits.excerpt(value)}; write one of {', '.join(sorted(KINDS))}")
    return kind


def _duration(value: object) -> timedelta | None:
    if value is None:
        return None
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    text = _text(value)
    if text[-1:] in units and text[:-1].isdecimal() and len(text) <= _LONGEST:
        found = limits.duration(int(text[:-1]) * units[text[-1]])
        if found is None:
            raise ValueError(f"duration is {limits.excerpt(value)}, which is more than a year")
        return found
    raise ValueError(f"duration is {limits.excerpt(value)}; write 30s, 10m, 4h or 1d")


def _text(value: object) -> str:
    return value if isinstance(value, str) else limits.excerpt(value)


_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


class Request(Struct, frozen=True):
    """What a person requests; `not_before` is UTC, and None for as soon as the settings allow.

    `by` and `at` (UTC) say who wrote it, and when; empty and None if that is not known. Raises ValueError,
    with what to change, for what the annotation can't hold.
    """

    kind: Kind
    not_before: datetime | None = None
    duration: timedelta | None = None
    id: str = ""
    reason: str = ""
    by: str = ""
    at: datetime | None = None

    def __post_init__(self) -> None:
        """Check the limits that a reader of the annotation applies."""
        for name, text, most in (
            ("id", self.id, limits.NAME),
            ("reason", self.reason, limits.TEXT),
            ("name", self.by, limits.NAME),
        ):
            if len(text) > most:
                raise ValueError(f"the {name} has {len(text)} characters; write at most {most}")
        if self.duration is not None and self.duration > limits.LONGEST:
            longest = limits.LONGEST.days
            raise ValueError(f"a duration of {format_duration(self.duration)} is longer than {longest}d")

    @property
    def author(self) -> str:
        """Who requests it, and when, in words; empty if that is not known."""
        at = f" at {to_text(self.at)}" if self.at is not None else ""
        return f"by {self.by}{at}" if self.by else ""

    @property
    def text(self) -> str:
        """The text of the annotation."""
        duration = None
        if self.duration is not None:
            seconds = int(self.duration.total_seconds())
            size, unit = next(pair for pair in _UNITS if seconds % pair[0] == 0)
            duration = f"{seconds // size}{unit}"
        values = {
            "kind": self.kind.value,
            "notBefore": to_text(self.not_before) if self.not_before else None,
            "duration": duration,
            "id": limits.whole(self.id),
            "reason": limits.whole(self.reason),
            "by": limits.whole(self.by),
            "at": to_text(self.at) if self.at else None,
        }
        return json.dumps({key: value for key, value in values.items() if value}, ensure_ascii=False)


class RequestRefused(Struct, frozen=True):
    """Why the request of a node is not changed, and what to do about it."""

    because: str


def parse_not_before(text: str, zone: tzinfo, now: datetime) -> datetime:
    """Return the moment in UTC: `2h` or `+2h` from `now` (aware), a date in `zone`, or RFC 3339.

    Raises ValueError, with what to change, for any other text and for a moment that is not in the future.
    """
    instead = "leave it out to start as soon as the settings allow"
    return parse_ahead(text, zone, now, instead=instead)


def requested(
    node: Node, request: Request, settings: Settings, *, replace: bool
) -> NodeWrite | RequestRefused | None:
    """Return the patch that requests the maintenance, None where it is requested already, or a refusal.

    Refused for a node that the settings do not select, and while the node has another request, unless
    `replace`.
    """
    if not settings.in_fleet(node.labels):
        return RequestRefused("nodeSelector of the settings does not select it, so no pass would act on it")
    key = keys_of(settings.keys.prefix).request
    before = node.annotations.get(key)
    if before is not None:
        if _same(before, request):
            return None
        if not replace:
            try:
                has = f"it has another request: {describe(before)}"
            except ValueError as error:
                has = f"it has a request that can't be read: {error}"
            return RequestRefused(f"{has}; --replace overwrites it, --cancel removes it")
    return node_write(node, settings.keys.prefix, annotations={key: request.text})


def cancelled(node: Node, settings: Settings, who: str, now: datetime) -> NodeWrite | None:
    """Return the patch by which `who` removes the request of the node, None if it has none."""
    prefix = settings.keys.prefix
    key = keys_of(prefix).request
    if key not in node.annotations:
        return None
    over = [(REQUESTED, word_of(node.annotations[key]))]
    kept = with_end(node, prefix, over, "request cancelled", who, now)
    return node_write(node, prefix, annotations={key: None, **kept})


def word_of(text: str) -> Word:
    """Return who has written the annotation's text, and when. Its reason is what is requested, and why."""
    try:
        request = _read(text)
    except ValueError as error:
        return Word(problem=limits.text(f"the request can't be read: {error}"))
    return Word(request.by, request.at, reason=limits.text(", ".join(_wanted(request))))


def describe(text: str) -> str:
    """Return in words what the annotation's text requests, and who did; ValueError if it can't be read."""
    request = _read(text)
    return ", ".join((*_wanted(request), *filter(None, (request.author,))))


def _wanted(request: Request) -> list[str]:
    parts = [request.kind.value]
    if request.not_before is not None:
        parts.append(f"not before {to_text(request.not_before)}")
    if request.duration is not None:
        parts.append(f"for {format_duration(request.duration)}")
    if request.id:
        parts.append(f"id {request.id}")
    if request.reason:
        parts.append(f"“{request.reason}”")
    return parts


def removed(node: Node, settings: Settings) -> str:
    """Return in words that the request of the node is removed, and which one: another person may need it."""
    try:
        return f"request removed: {describe(node.annotations[keys_of(settings.keys.prefix).request])}"
    except (KeyError, ValueError):
        return "request removed"


def _same(text: str, request: Request) -> bool:
    """Whether the text requests the same, whoever wrote it."""
    try:
        before = _read(text)
    except ValueError:
        return False
    return changed(before, by="", at=None) == changed(_read(request.text), by="", at=None)


def _duration_text(length: timedelta) -> str:
    seconds = int(length.total_seconds())
    size, unit = next(one for one in _UNITS if seconds % one[0] == 0)
    return f"{seconds // size}{unit}"
