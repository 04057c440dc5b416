"""Azure's scheduled events, from IMDS or as the node agent published them, as signals of one VM.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass  # noqa: TID251 - the agent imports this file
from datetime import datetime, timedelta
from typing import TypeVar

from reconciler.model import limits, moments
from reconciler.model.azure import is_degraded, vm_name
from reconciler.model.errors import SourceError
from reconciler.model.event import Initiator, Kind, Signal, Status
from reconciler.model.limits import count_of

SOURCE = "imds"
_Choice = TypeVar("_Choice", Status, Initiator)
VERSION = 1
"""Version of the published form."""

_KINDS = {
    "freeze": Kind.FREEZE,
    "reboot": Kind.REBOOT,
    "redeploy": Kind.REDEPLOY,
    "preempt": Kind.PREEMPT,
    "terminate": Kind.TERMINATE,
    "spotrebalancerecommendation": Kind.REBALANCE,
}

# Only these words distinguish a live migration from another freeze: IMDS has no field for it.
_LIVE_MIGRATION = "memory-preserving live migration"


def document(body: bytes | str) -> dict[str, object]:
    """Read the body of an answer of IMDS; SourceError if it is not a document of scheduled events."""
    try:
        # As `from_annotation` reads numbers: both must give the same description.
        value = json.loads(body, parse_int=limits.json_number)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"scheduled events are not JSON: {error}") from error
    _events(value)
    assert isinstance(value, dict)
    return value


def signals(document: Mapping[str, object], vm: str) -> tuple[Signal, ...]:
    """Return the signals of the document for one VM.

    An event that does not name its VM, or can't be read at all, is an `Unknown` signal for every VM that sees
    it, because it can't be ruled out. An event that is over is none. SourceError if there is no list of
    events.
    """
    return tuple(_signal(event, vm) for event in _concerning(document, vm) if not _is_over(event))


def to_annotation(document: Mapping[str, object], vm: str) -> str:
    """Return the published form: this VM's events as IMDS gave them, the same text for the same events.

    It has no `DocumentIncarnation`, and the events are sorted, because both change while the events of this
    VM do not. Events that do not fit into the annotation are left out, and `more` counts them.
    """
    events = sorted(_concerning(document, vm), key=_text)
    text = _text({"version": VERSION, "vm": vm, "events": events})
    if len(text) <= limits.ANNOTATION and len(events) <= limits.EVENTS:
        return text
    kept: list[object] = []
    size = len(_text({"version": VERSION, "vm": vm, "events": [], "more": len(events)}))
    for event in events:
        more = len(_text(event)) + 1
        if len(kept) < limits.EVENTS and size + more <= limits.ANNOTATION:
            kept.append(event)
            size += more
    return _text({"version": VERSION, "vm": vm, "events": kept, "more": len(events) - len(kept)})


@dataclass(frozen=True, slots=True)
class Published:
    """The published form: the VM that it is about, empty if it does not say so, and its events.

    `problem` says why the events can't be read, empty if they can. What was published about another VM says
    so in any version.
    """

    vm: str = ""
    signals: tuple[Signal, ...] = ()
    problem: str = ""

    def is_of_another_vm(self, provider_id: str) -> bool:
        """Whether it is about another VM than that of a Node with this providerID.

        AKS copies annotations to new nodes in an image upgrade (Azure/AKS#2679).
        """
        own, named = vm_name(provider_id), self.vm.strip().casefold()
        return own is not None and bool(named) and named != own.casefold()


def published(text: str) -> Published:
    """Read the published form, of which broken text and another version are a problem.

    Events that the agent had to leave out are one signal of kind Unknown.
    """
    try:
        value = limits.loads(text)
    except ValueError as error:
        return Published(problem=f"the published events are not JSON: {error}")
    if not isinstance(value, dict):
        return Published(problem="the published events are not a JSON object")
    vm, events, version = value.get("vm"), value.get("events"), value.get("version")
    vm = vm if isinstance(vm, str) else ""
    if version != VERSION or isinstance(version, bool):
        shown = limits.excerpt(version)
        return Published(vm, problem=f"the published events have version {shown}, not {VERSION}")
    if not vm or not isinstance(events, list):
        return Published(vm, problem="the published events lack `vm` or `events`")
    if len(events) > limits.EVENTS:
        return Published(
            vm, problem=f"{count_of(len(events), 'event', 'are')} published, and {limits.EVENTS} are read"
        )
    found = signals({"Events": events}, vm)
    more = value.get("more", 0)
    if more != 0:
        left_out = f"{limits.excerpt(more)} more events did not fit into the annotation"
        found = (*found, Signal(SOURCE, Kind.UNKNOWN, Status.SCHEDULED, description=left_out))
    return Published(vm, found)


def to_acknowledgement(ids: Iterable[str]) -> str:
    """Return the annotation's text for these events."""
    return _text(list(ids))


def from_acknowledgement(text: str | None) -> tuple[str, ...]:
    """Parse the annotation: the IDs of events to start; none if there is no annotation, or it is broken."""
    try:
        value = limits.loads(text or "[]")
    except ValueError:
        return ()
    return tuple(one for one in value if isinstance(one, str) and one) if isinstance(value, list) else ()


def to_be_started(document: Mapping[str, object], vm: str, ids: Iterable[str]) -> tuple[str, ...]:
    """Return the IDs that IMDS still has as scheduled for this VM, in the spelling of IMDS.

    An event that does not name its VM is none of them.
    """
    wanted = {one.casefold() for one in ids}
    found = (
        signal.id
        for signal in signals(document, vm)
        if signal.status is Status.SCHEDULED and signal.id and signal.id.casefold() in wanted
        if vm.casefold() in (name.strip().casefold() for name in signal.resources)
    )
    return tuple(dict.fromkeys(found))


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _events(document: object) -> list[object]:
    events = document.get("Events") if isinstance(document, Mapping) else None
    if not isinstance(events, list):
        raise SourceError("scheduled events without a list `Events`")
    return events


def _concerning(document: Mapping[str, object], vm: str) -> Iterator[object]:
    return (event for event in _events(document) if _names(event, vm) is not False)


def _names(event: object, vm: str) -> bool | None:
    """Return whether the event names the VM; None if that is unknown."""
    if not isinstance(event, dict):
        return None
    resources = event.get("Resources")
    if isinstance(resources, str):
        resources = [resources]
    if not isinstance(resources, list):
        return None
    names = [name.strip().casefold() for name in resources if isinstance(name, str)]
    # The whole name: `…vmss_1` is not `…vmss_10`.
    if vm.casefold() in names:
        return True
    return False if names and len(names) == len(resources) else None


def _signal(event: object, vm: str) -> Signal:
    if not isinstance(event, dict):
        return Signal(
            SOURCE,
            Kind.UNKNOWN,
            Status.SCHEDULED,
            description=f"an event that is not an object: {_shortened(event)}",
        )
    notes = []
    kind = _kind(event)
    if kind is Kind.UNKNOWN:
        notes.append(f"unknown EventType {_shortened(event.get('EventType'))}")
    if _names(event, vm) is None:
        # Without names no VM may be drained, because a hundred VMs may receive this event.
        kind = Kind.UNKNOWN
        notes.append(f"{_shortened(event.get('EventType'))} that does not say which VM it is about")
    not_before, unreadable = _date(event.get("NotBefore"))
    if kind is Kind.REBALANCE:
        # The date of an advice says when it was given. Nothing is due then.
        not_before, unreadable = None, False
    if unreadable:
        notes.append(f"unreadable NotBefore {_shortened(event.get('NotBefore'))}")
    status = _choice(Status, event.get("EventStatus"))
    if status is None:
        notes.append(f"unknown EventStatus {_shortened(event.get('EventStatus'))}")
        # IMDS empties the date of what has started.
        status = Status.STARTED if event.get("NotBefore") == "" else Status.SCHEDULED
    description = _string(event.get("Description"))
    initiator = _choice(Initiator, event.get("EventSource"))
    return Signal(
        SOURCE,
        kind,
        status,
        not_before=not_before,
        duration=_duration(event.get("DurationInSeconds")),
        id=limits.text(_string(event.get("EventId")), limits.NAME),
        description=limits.text(
            f"{'; '.join(notes)}: {description}".removesuffix(": ") if notes else description
        ),
        initiator=initiator,
        resources=_resources(event.get("Resources")),
        date_unreadable=unreadable,
        degraded=is_degraded(kind, initiator),
    )


def _kind(event: Mapping[str, object]) -> Kind:
    kind = _KINDS.get(_string(event.get("EventType")).strip().casefold(), Kind.UNKNOWN)
    if kind is Kind.FREEZE and _LIVE_MIGRATION in _string(event.get("Description")).casefold():
        return Kind.LIVE_MIGRATION
    return kind


def _is_over(event: object) -> bool:
    """Whether an event has ended or was cancelled.

    IMDS drops such an event. Event Grid and Azure Resource Graph have the same form, and report its end.
    """
    text = _string(event.get("EventStatus")) if isinstance(event, dict) else ""
    return text.strip().casefold() in ("completed", "canceled", "cancelled")


def _choice(kind: type[_Choice], value: object) -> _Choice | None:
    text = _string(value).strip().casefold()
    return next((choice for choice in kind if choice.casefold() == text), None)


def _date(value: object) -> tuple[datetime | None, bool]:
    """Return the moment, and whether it can't be read."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None, False
    if not isinstance(value, str):
        return None, True
    try:
        return moments.from_text(value), False
    except (ValueError, OverflowError):
        return None, True


def _duration(value: object) -> timedelta | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # -1 is Azure's "unknown"; 0 is "no interruption".
    return limits.duration(value)


def _resources(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (limits.text(value),)
    if not isinstance(value, list):
        return ()
    # An invalid name stays as text, so that the list is not taken for complete without it.
    return tuple(limits.text(name if isinstance(name, str) else _shortened(name)) for name in value)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _shortened(value: object) -> str:
    return limits.text(_text(value), 200)
