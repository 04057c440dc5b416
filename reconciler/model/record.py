"""The record: what a node's annotation remembers of its case.

The text is JSON. A record of another UID is ignored; one that can't be read, or is of a newer version,
raises RecordUnreadable and is never overwritten.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from reconciler.errors import RecordUnreadable
from reconciler.model.event import Kind, MaintenanceEvent, Signal
from reconciler.model.moments import from_text, to_text

VERSION = 1
# What two clocks and two formats may differ in and still mean one moment.
SAME_MOMENT = timedelta(minutes=1)


class State(StrEnum):
    """A node's state in one profile, in maintenance-controller's words, worst last."""

    OPERATIONAL = "operational"
    REQUIRED = "maintenance-required"
    IN_MAINTENANCE = "in-maintenance"


class Cordon(StrEnum):
    """Whose the cordon is: only ours and an adopted one are ever undone."""

    NONE = "none"
    OURS = "ours"
    FOREIGN = "foreign"
    ADOPTED_MECHANIC = "adopted:mechanic"

    @property
    def may_be_undone(self) -> bool:
        """Whether law 2 lets us uncordon."""
        return self in (Cordon.OURS, Cordon.ADOPTED_MECHANIC)


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """An event as the record knows it: enough to find it again, and who told of it."""

    kind: Kind
    not_before: datetime | None
    ids: tuple[str, ...]
    sources: tuple[str, ...]
    condition: str = ""

    def tells_of(self, other: KnownEvent | MaintenanceEvent) -> bool:
        """Whether both are one event, as the design's 'The life of a case' has it."""
        return same_event(
            (self.kind, self.not_before, self.ids, self.condition),
            (other.kind, other.not_before, other.ids, other.condition),
        )


Identity = tuple[Kind, datetime | None, tuple[str, ...], str]


def identity(signal: Signal) -> Identity:
    """What a signal is told apart by."""
    return (signal.kind, signal.not_before, (signal.id,) if signal.id else (), signal.condition)


def same_event(one: Identity, two: Identity) -> bool:
    """Whether two identities of one node are one event.

    They are when an id is in both, compared without regard to case (IMDS writes upper-case GUIDs, Resource
    Graph lower-case ones); or else when kind (a Freeze may be a LiveMigration) and not_before (a minute
    either way, or missing on one side) agree.
    """
    if one[3] or two[3]:
        return one[3] == two[3]
    ids = {text.casefold() for text in one[2]}
    if ids & {text.casefold() for text in two[2]}:
        return True
    if one[0] != two[0] and not (one[0].is_pause and two[0].is_pause):
        return False
    if one[1] is None or two[1] is None:
        return True
    return abs(one[1] - two[1]) <= SAME_MOMENT


@dataclass(frozen=True, slots=True)
class ProfileState:
    """One profile's state and since when."""

    state: State
    since: datetime


@dataclass(frozen=True, slots=True)
class DrainRecord:
    """The drain of a case: when this attempt began, which one it is, and when all pods had gone."""

    since: datetime
    attempt: int = 1
    done: datetime | None = None


@dataclass(frozen=True, slots=True)
class SelfService:
    """Maintenance that we started ourselves: when we last asked for it, how often, and the boot before it.

    Written before the platform is asked, so that whoever comes after a kill knows that it may have been.
    """

    asked: datetime
    attempt: int = 1
    boot_id: str = ""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A new machine that we asked for in the place of this node's.

    `asked` is when we last asked for anything. `wanted` is the number of machines to which the pool was
    raised for it, None where it was not. `removals` counts how often the node's own machine was to be
    deleted. Written before anybody is asked, so that whoever comes after a kill knows that it may have been.
    """

    asked: datetime
    wanted: int | None = None
    removals: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """All that we remember of one node.

    `events` are those that the case is about; `dismissed` those that somebody's uncordon told us to let
    be; `quiet_since` is when the last of `events` had gone from every source that told of it. `claimed_by`
    names who drains by hand, empty for the passes. `self_service` is set once we asked the platform to begin,
    `acknowledged` are the ids of the events that we told it to start, `replacement` is set once another
    machine was asked for.
    """

    uid: str
    profiles: tuple[tuple[str, ProfileState], ...] = ()
    events: tuple[KnownEvent, ...] = ()
    cordon: Cordon = Cordon.NONE
    drain: DrainRecord | None = None
    quiet_since: datetime | None = None
    dismissed: tuple[KnownEvent, ...] = ()
    claimed_by: str = ""
    self_service: SelfService | None = None
    acknowledged: tuple[str, ...] = ()
    replacement: Replacement | None = None

    def closed(self, dismissed: tuple[KnownEvent, ...] | None = None) -> Record:
        """Return the record without its case; `dismissed` takes the place of what was let be before."""
        return Record(
            self.uid,
            self.profiles,
            dismissed=self.dismissed if dismissed is None else dismissed,
            claimed_by=self.claimed_by,
        )

    def state(self, profile: str) -> State:
        """The state of a profile; a profile that is not named is operational."""
        return next((held.state for name, held in self.profiles if name == profile), State.OPERATIONAL)

    def since(self, profile: str) -> datetime | None:
        """Since when the profile is in its state."""
        return next((held.since for name, held in self.profiles if name == profile), None)

    def moved(self, profile: str, state: State, now: datetime) -> Record:
        """Return the record with the profile in that state since `now`."""
        others = tuple(pair for pair in self.profiles if pair[0] != profile)
        kept = () if state is State.OPERATIONAL else ((profile, ProfileState(state, now)),)
        return replace(self, profiles=tuple(sorted((*others, *kept))))

    @property
    def worst(self) -> State:
        """The worst state of all profiles, which the label shows."""
        order = list(State)
        return max((held.state for _, held in self.profiles), key=order.index, default=State.OPERATIONAL)

    @property
    def empty(self) -> bool:
        """Whether nothing is worth remembering any more."""
        return not self.profiles and not self.dismissed and not self.claimed_by


def to_annotation(record: Record) -> str:
    """Return the record as the annotation's text: sorted, compact, the same for the same record."""
    case: dict[str, Any] = {
        "cordon": record.cordon.value,
        "events": [_event_out(event) for event in record.events],
    }
    if record.drain:
        case["drain"] = {"attempt": record.drain.attempt, "since": to_text(record.drain.since)}
        if record.drain.done:
            case["drain"]["done"] = to_text(record.drain.done)
    if record.quiet_since:
        case["quietSince"] = to_text(record.quiet_since)
    if record.self_service:
        # A program that does not know this key waits for event, node and settle time as ever: still right.
        case["selfService"] = {
            "asked": to_text(record.self_service.asked),
            "attempt": record.self_service.attempt,
            "bootId": record.self_service.boot_id,
        }
    if record.acknowledged:
        case["acknowledged"] = list(record.acknowledged)
    if record.replacement:
        case["replacement"] = {
            "asked": to_text(record.replacement.asked),
            "removals": record.replacement.removals,
        }
        if record.replacement.wanted is not None:
            case["replacement"]["wanted"] = record.replacement.wanted
    document: dict[str, Any] = {
        "version": VERSION,
        "uid": record.uid,
        "profiles": {
            name: {"state": held.state.value, "since": to_text(held.since)} for name, held in record.profiles
        },
    }
    if record.profiles or record.claimed_by:
        document["case"] = case
    if record.dismissed:
        document["dismissed"] = [_event_out(event) for event in record.dismissed]
    if record.claimed_by:
        document["claimedBy"] = record.claimed_by
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def from_annotation(text: str, uid: str) -> Record | None:
    """Read the record of the node that has this UID; None where it is of another node.

    Raises RecordUnreadable when the text is no record, or one of a newer version.
    """
    try:
        document = json.loads(text)
        version = document["version"]
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise RecordUnreadable(f"its version is {version!r}")
        if version > VERSION:
            raise RecordUnreadable(f"it is of version {version}, this program knows {VERSION}")
        if document["uid"] != uid:
            return None
        case = document.get("case", {})
        drain = case.get("drain")
        started = case.get("selfService")
        return Record(
            uid=uid,
            profiles=tuple(
                sorted(
                    (str(name), ProfileState(State(held["state"]), from_text(held["since"])))
                    for name, held in document["profiles"].items()
                )
            ),
            events=tuple(_event_in(event) for event in case.get("events", ())),
            cordon=Cordon(case.get("cordon", "none")),
            drain=DrainRecord(
                from_text(drain["since"]),
                int(drain["attempt"]),
                from_text(drain["done"]) if "done" in drain else None,
            )
            if drain
            else None,
            quiet_since=from_text(case["quietSince"]) if "quietSince" in case else None,
            dismissed=tuple(_event_in(event) for event in document.get("dismissed", ())),
            claimed_by=str(document.get("claimedBy", "")),
            self_service=SelfService(
                from_text(started["asked"]), int(started["attempt"]), str(started["bootId"])
            )
            if started
            else None,
            acknowledged=tuple(str(one) for one in case.get("acknowledged", ())),
            replacement=_replacement_in(case["replacement"]) if "replacement" in case else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise RecordUnreadable(f"it can't be read: {error!r}") from error


def _replacement_in(document: dict[str, Any]) -> Replacement:
    wanted = document.get("wanted")
    return Replacement(
        from_text(document["asked"]), None if wanted is None else int(wanted), int(document["removals"])
    )


def _event_out(event: KnownEvent) -> dict[str, Any]:
    out: dict[str, Any] = {
        "kind": event.kind.value,
        "ids": list(event.ids),
        "sources": list(event.sources),
    }
    if event.not_before:
        out["notBefore"] = to_text(event.not_before)
    if event.condition:
        out["condition"] = event.condition
    return out


def _event_in(document: dict[str, Any]) -> KnownEvent:
    return KnownEvent(
        kind=Kind(document["kind"]),
        not_before=from_text(document["notBefore"]) if "notBefore" in document else None,
        ids=tuple(str(one) for one in document["ids"]),
        sources=tuple(str(one) for one in document["sources"]),
        condition=str(document.get("condition", "")),
    )
