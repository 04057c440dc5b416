"""The record as the annotation's text, which is JSON.

Version 2 is written; versions 1 and 2 are read. A record with another UID is ignored. One that can't be
read, or has a newer version, raises RecordUnreadable and is never overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from reconciler.model import limits
from reconciler.model.drains import MOST_NAMES, KeptPods
from reconciler.model.errors import RecordUnreadable
from reconciler.model.event import Kind
from reconciler.model.hooks import HookEnd, HookId, HookKind, HookRecord, HookStep
from reconciler.model.keys import keys_of
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Node
from reconciler.model.record import (
    CaseFacts,
    Claim,
    ClaimedCordon,
    ClaimedDrain,
    ClaimKind,
    Cordon,
    DrainRecord,
    Forecast,
    KnownEvent,
    PlatformStart,
    ProfileRecord,
    Record,
    Replacement,
    SelfService,
    State,
    Unreadable,
)
from reconciler.model.structs import replace

VERSION = 2
_OF_VERSION_1 = "default"
"""The only profile of a program that writes version 1."""


def record_of(node: Node, prefix: str) -> Record | Unreadable | None:
    """Return a node's record, None if it has none or one with another UID."""
    text = node.annotations.get(keys_of(prefix).record)
    if text is None:
        return None
    try:
        read = _kept if len(text) <= _SHORT else from_annotation
        return read(text, node.uid)
    except RecordUnreadable as error:
        return Unreadable(str(error))


def to_annotation(record: Record) -> str:
    """Return the record as the annotation's text: sorted and compact. Equal records give equal texts.

    Raises RecordUnreadable if it would be longer than `from_annotation` reads.
    """
    document: dict[str, Any] = {
        "version": VERSION,
        "uid": record.uid,
        "profiles": {name: _profile_out(kept) for name, kept in record.profiles},
    }
    if record.cordon:
        document["cordon"] = {
            "whose": record.cordon.whose.value,
            "since": to_text(record.cordon.since),
            "claims": _claims_out(record.cordon.claims),
        }
    if record.drain:
        document["drain"] = {**_drain_out(record.drain.drain), "claims": _claims_out(record.drain.claims)}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    if len(text) > limits.ANNOTATION:
        raise RecordUnreadable(f"it would be longer than {limits.ANNOTATION} characters")
    return text


def from_annotation(text: str, uid: str) -> Record | None:
    """Parse the record of the node with this UID; None if it is of another node.

    Raises RecordUnreadable if the text is no record or has a newer version.
    """
    try:
        document = limits.loads(text)
        version = document["version"]
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise RecordUnreadable(f"its version is {limits.excerpt(version)}")
        if version > VERSION:
            raise RecordUnreadable(f"it has version {version}, but this program knows {VERSION}")
        if document["uid"] != uid:
            return None
        return _version_1(document, uid) if version == 1 else _version_2(document, uid)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RecordUnreadable(limits.text(f"it can't be read: {error!r}")) from error


_SHORT = 2048
"""Characters of a record that is read once. The same text stays on a node for many passes."""

_kept = lru_cache(maxsize=1024)(from_annotation)


def _version_2(document: Mapping[str, Any], uid: str) -> Record:
    cordon, drain = document.get("cordon"), document.get("drain")
    return Record(
        uid,
        _profiles({str(name): _profile_in(kept) for name, kept in document["profiles"].items()}),
        ClaimedCordon(Cordon(cordon["whose"]), from_text(cordon["since"]), _claims_in(cordon["claims"]))
        if cordon is not None
        else None,
        ClaimedDrain(_drain_in(drain), _claims_in(drain["claims"])) if drain is not None else None,
    )


def _version_1(document: Mapping[str, Any], uid: str) -> Record:
    """Read version 1: the case, the cordon and the drain are those of its one profile.

    A drain by hand put that profile into maintenance. In version 2 the person claims cordon and drain
    instead; an earlier case of the profile continues when that claim is removed.
    """
    case = document.get("case", {})
    person = limits.text(str(document.get("claimedBy", "")))
    profiles = {
        str(name): ProfileRecord(State(kept["state"]), from_text(kept["since"]))
        for name, kept in document["profiles"].items()
    }
    first = profiles.get(_OF_VERSION_1)
    mine = _data_in({**case, "dismissed": document.get("dismissed", ())}, first or ProfileRecord())
    claim = Claim(ClaimKind.PERSON, person) if person else Claim(ClaimKind.PROFILE, _OF_VERSION_1)
    if person:
        state = State.REQUIRED if mine.events else State.OPERATIONAL
        mine = replace(mine, state=state, since=mine.since if mine.events else None)
    record = Record(uid, _profiles({**profiles, _OF_VERSION_1: mine}))
    if first is None or first.since is None:
        return record
    whose = Cordon(case.get("cordon", "none"))
    if whose is not Cordon.NONE:
        record = record.cordoned(whose, claim, first.since)
    if person:
        return record.drained(DrainRecord(first.since), claim)
    return record.drained(_drain_in(case["drain"]), claim) if case.get("drain") else record


def _profiles(found: Mapping[str, ProfileRecord]) -> tuple[tuple[str, ProfileRecord], ...]:
    kept = ((name, one) for name, one in found.items() if one.has_data)
    return tuple(sorted(kept, key=lambda pair: pair[0]))


def _profile_out(kept: ProfileRecord) -> dict[str, Any]:
    out: dict[str, Any] = {"state": kept.state.value}
    if kept.since:
        out["since"] = to_text(kept.since)
    if kept.events:
        out["events"] = [event_out(event) for event in kept.events]
    if kept.quiet_since:
        out["quietSince"] = to_text(kept.quiet_since)
    if kept.dismissed:
        out["dismissed"] = [event_out(event) for event in kept.dismissed]
    if kept.self_service:
        # A program that does not know this key waits for event, node and settle time, which is still correct.
        out["selfService"] = {
            "asked": to_text(kept.self_service.asked),
            "attempt": kept.self_service.attempt,
            "bootId": kept.self_service.boot_id,
        }
    if kept.acknowledged:
        out["acknowledged"] = list(kept.acknowledged)
    if kept.replacement:
        out["replacement"] = {
            "asked": to_text(kept.replacement.asked),
            "removals": kept.replacement.removals,
        }
        if kept.replacement.wanted is not None:
            out["replacement"]["wanted"] = kept.replacement.wanted
        if kept.replacement.retries:
            out["replacement"]["retries"] = kept.replacement.retries
    # A program that does not know this key decides the same; it only does not tell what happened.
    if kept.facts != CaseFacts():
        out["facts"] = _facts_out(kept.facts)
    if kept.hooks:
        # A program that does not know this key goes on without the hooks.
        out["hooks"] = [_hook_out(one) for one in kept.hooks]
    return out


def _profile_in(document: Mapping[str, Any]) -> ProfileRecord:
    state = State(document["state"])
    since = from_text(document["since"]) if state is not State.OPERATIONAL else None
    return _data_in(document, ProfileRecord(state, since))


def _data_in(document: Mapping[str, Any], start: ProfileRecord) -> ProfileRecord:
    """Add a profile's own data, which has the same form in versions 1 and 2."""
    started, replaced = document.get("selfService"), document.get("replacement")
    return replace(
        start,
        events=_events_in(document.get("events", ())),
        quiet_since=from_text(document["quietSince"]) if "quietSince" in document else None,
        dismissed=_events_in(document.get("dismissed", ())),
        self_service=SelfService(
            from_text(started["asked"]), limits.count(started["attempt"]), limits.text(str(started["bootId"]))
        )
        if started
        else None,
        acknowledged=tuple(limits.text(str(one)) for one in document.get("acknowledged", ())),
        replacement=_replacement_in(replaced) if replaced is not None else None,
        facts=_facts_in(document.get("facts", {})),
        hooks=_hooks_in(document.get("hooks", ())),
    )


def _facts_out(facts: CaseFacts) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if facts.starts:
        out["starts"] = [_start_out(one) for one in facts.starts]
    if facts.deadline_passed:
        out["deadlinePassed"] = to_text(facts.deadline_passed)
    if facts.warned:
        out["warned"] = list(facts.warned)
    if facts.announced:
        out["announced"] = to_text(facts.announced)
    if facts.planned:
        out["planned"] = to_text(facts.planned)
    if facts.drain_began:
        out["drainBegan"] = to_text(facts.drain_began)
    if facts.moved is not None:
        out["moved"] = facts.moved
    if facts.will_be_missed:
        forecast = facts.will_be_missed
        out["willBeMissed"] = _forecast_out(forecast)
    return out


def _facts_in(document: Mapping[str, Any]) -> CaseFacts:
    starts = tuple(_start_in(one) for one in document.get("starts", ()))
    moved, forecast = document.get("moved"), document.get("willBeMissed")
    if len(starts) > limits.EVENTS:
        raise ValueError(f"{len(starts)} starts are recorded, and {limits.EVENTS} are read")
    return CaseFacts(
        starts,
        from_text(document["deadlinePassed"]) if "deadlinePassed" in document else None,
        tuple(limits.text(str(one)) for one in document.get("warned", ())),
        from_text(document["announced"]) if "announced" in document else None,
        from_text(document["planned"]) if "planned" in document else None,
        from_text(document["drainBegan"]) if "drainBegan" in document else None,
        None if moved is None else limits.count(moved),
        _forecast_in(forecast) if forecast else None,
    )


def _forecast_out(forecast: Forecast) -> dict[str, Any]:
    out = {"cause": forecast.cause, "since": to_text(forecast.since)}
    if forecast.warns != forecast.since:
        out["warns"] = to_text(forecast.warns)
    if forecast.over is not None:
        out["over"] = to_text(forecast.over)
    return out


def _forecast_in(document: Mapping[str, Any]) -> Forecast:
    since = from_text(document["since"])
    return Forecast(
        limits.text(str(document["cause"])),
        since,
        from_text(document["warns"]) if "warns" in document else since,
        from_text(document["over"]) if "over" in document else None,
    )


def _hook_out(hook: HookRecord) -> dict[str, Any]:
    out: dict[str, Any] = {"hook": str(hook.id), "since": to_text(hook.since)}
    if hook.id.kind is not HookKind.ANNOTATION:
        out["kind"] = hook.id.kind.value
    if hook.end is not None:
        out["end"] = hook.end.value
    if hook.told:
        out["told"] = True
    return out


def _hooks_in(documents: Sequence[Mapping[str, Any]]) -> tuple[HookRecord, ...]:
    most = limits.HOOKS * len(HookStep) * len(HookKind)
    if len(documents) > most:
        raise ValueError(f"{len(documents)} hooks are recorded, and {most} are read")
    return tuple(sorted((_hook_in(one) for one in documents), key=lambda one: one.id))


def _hook_in(document: Mapping[str, Any]) -> HookRecord:
    step, _, name = document["hook"].partition(".")
    end = document.get("end")
    return HookRecord(
        HookId(HookStep(step), limits.text(name), HookKind(document.get("kind", HookKind.ANNOTATION))),
        from_text(document["since"]),
        None if end is None else HookEnd(end),
        bool(document.get("told", False)),
    )


def _start_out(start: PlatformStart) -> dict[str, Any]:
    out: dict[str, Any] = {"event": event_out(start.event), "at": to_text(start.at)}
    if start.pods is not None:
        out["pods"] = start.pods
    if start.met:
        out["met"] = start.met
    return out


def _start_in(document: Mapping[str, Any]) -> PlatformStart:
    pods = document.get("pods")
    return PlatformStart(
        event_in(document["event"]),
        from_text(document["at"]),
        None if pods is None else limits.count(pods),
        limits.text(str(document.get("met", ""))),
    )


def _drain_out(drain: DrainRecord) -> dict[str, Any]:
    out: dict[str, Any] = {"attempt": drain.attempt, "since": to_text(drain.since)}
    if drain.done:
        out["done"] = to_text(drain.done)
    if drain.kept.count:
        out["kept"] = {"count": drain.kept.count, "pods": list(drain.kept.names)}
    return out


def _drain_in(document: Mapping[str, Any]) -> DrainRecord:
    done: datetime | None = from_text(document["done"]) if "done" in document else None
    kept = document.get("kept")
    return DrainRecord(
        from_text(document["since"]),
        limits.count(document["attempt"]),
        done,
        _kept_in(kept) if kept is not None else KeptPods(),
    )


def _kept_in(document: Mapping[str, Any]) -> KeptPods:
    names = tuple(limits.text(str(name)) for name in document["pods"][:MOST_NAMES])
    return KeptPods(limits.count(document["count"]), names)


def _claims_out(claims: tuple[Claim, ...]) -> list[str]:
    return [str(claim) for claim in claims]


def _claims_in(claims: list[str]) -> tuple[Claim, ...]:
    found = {
        Claim(ClaimKind(kind), limits.text(name))
        for kind, _, name in (claim.partition(":") for claim in claims)
    }
    if not found:
        raise ValueError("its cordon or drain has no claims")
    return tuple(sorted(found))


def _replacement_in(document: Mapping[str, Any]) -> Replacement:
    wanted = document.get("wanted")
    return Replacement(
        from_text(document["asked"]),
        None if wanted is None else limits.count(wanted),
        limits.count(document["removals"]),
        limits.count(document.get("retries", 0)),
    )


def event_out(event: KnownEvent) -> dict[str, Any]:
    """Return an event as annotations have it."""
    out: dict[str, Any] = {
        "kind": event.kind.value,
        "ids": list(event.ids),
        "sources": list(event.sources),
    }
    if event.not_before:
        out["notBefore"] = to_text(event.not_before)
    if event.condition:
        out["condition"] = event.condition
    if event.waits:
        # A program that does not know this key takes the drain for one that was for this event, too.
        out["waits"] = True
    return out


def _events_in(documents: Iterable[Mapping[str, Any]]) -> tuple[KnownEvent, ...]:
    found = tuple(event_in(one) for one in documents)
    if len(found) > limits.EVENTS:
        raise ValueError(f"{len(found)} events are recorded, and {limits.EVENTS} are read")
    return found


def event_in(document: Mapping[str, Any]) -> KnownEvent:
    """Read an event of an annotation; raises what the record's reader turns into RecordUnreadable."""
    return KnownEvent(
        kind=Kind(document["kind"]),
        not_before=from_text(document["notBefore"]) if "notBefore" in document else None,
        ids=tuple(limits.text(str(one)) for one in document["ids"]),
        sources=tuple(limits.text(str(one)) for one in document["sources"]),
        condition=limits.text(str(document.get("condition", ""))),
        waits=bool(document.get("waits", False)),
    )
