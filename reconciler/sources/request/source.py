"""A request of a person or of another program as a source: the annotation `<prefix>/request`.

    {"kind": "Reboot", "notBefore": "2026-11-21T22:00:00Z", "duration": "5m", "id": "CHG-42", "reason": "…"}

Only `kind` is required. The request is valid until its author removes the annotation.
"""

from __future__ import annotations

from datetime import timedelta

from reconciler.model import limits
from reconciler.model.event import REQUEST, Answer, Kind, Reading, Signal, Status
from reconciler.model.keys import keys_of
from reconciler.model.moments import from_text
from reconciler.model.node import Node
from reconciler.passes.plugin import Source, SourceContext
from reconciler.settings.schema import Settings
from reconciler.sources.request.settings import SECTION

SOURCE = REQUEST
KEYS = ("kind", "notBefore", "duration", "id", "reason")
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
    """Read the annotation's text; ValueError says what to change."""
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
    not_before = None
    if document.get("notBefore"):
        try:
            not_before = from_text(_text(document["notBefore"]))
        except ValueError as error:
            raise ValueError(f"notBefore: {error}; write 2026-11-21T22:00:00Z") from error
    return Signal(
        SOURCE,
        kind,
        Status.SCHEDULED,
        not_before=not_before,
        duration=_duration(document.get("duration")),
        id=limits.text(_text(document.get("id") or ""), limits.NAME),
        description=limits.text(_text(document.get("reason") or "")),
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
