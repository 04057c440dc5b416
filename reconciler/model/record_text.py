"""The record as the annotation's text, which is JSON.

Version 2 is written; versions 1 and 2 are read. A record with another UID is ignored. One that can't be
read, or has a newer version, raises RecordUnreadable and is never overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from msgspec import Struct

from reconciler.model import limits
from reconciler.model.codec import decoded, encoded, register
from reconciler.model.errors import RecordUnreadable
from reconciler.model.hooks import HookEnd, HookId, HookKind, HookRecord, HookStep
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.record import (
    Claim,
    ClaimedCordon,
    ClaimedDrain,
    ClaimKind,
    Claims,
    Cordon,
    Forecast,
    ProfileRecord,
    Record,
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
        "profiles": {name: encoded(kept) for name, kept in record.profiles},
    }
    if record.cordon:
        document["cordon"] = encoded(record.cordon)
    if record.drain:
        document["drain"] = encoded(record.drain)
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
        return _record(_from_version_1(document) if version == 1 else document)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RecordUnreadable(limits.text(f"it can't be read: {error!r}")) from error


_SHORT = 2048
"""Characters of a record that is read once. The same text stays on a node for many passes."""

_kept = lru_cache(maxsize=1024)(from_annotation)


def _record(document: Mapping[str, Any]) -> Record:
    cordon, drain = document.get("cordon"), document.get("drain")
    profiles = {str(name): _profile(kept) for name, kept in document["profiles"].items()}
    return Record(
        document["uid"],
        tuple(sorted((pair for pair in profiles.items() if pair[1].has_data), key=lambda pair: pair[0])),
        decoded(ClaimedCordon, cordon) if cordon is not None else None,
        decoded(ClaimedDrain, drain) if drain is not None else None,
    )


def _from_version_1(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return version 2 of a document: the case, the cordon and the drain are those of its one profile.

    A drain by hand put that profile into maintenance. In version 2 the person claims cordon and drain
    instead; an earlier case of the profile continues when that claim is removed.
    """
    case, person = document.get("case", {}), document.get("claimedBy")
    first = document["profiles"].get(_OF_VERSION_1)
    mine = {"state": State.OPERATIONAL, **case, "dismissed": document.get("dismissed", []), **(first or {})}
    claims = [f"{ClaimKind.PERSON}:{person}" if person else f"{ClaimKind.PROFILE}:{_OF_VERSION_1}"]
    if person:
        mine["state"] = State.REQUIRED if case.get("events") else State.OPERATIONAL
    found = {"uid": document["uid"], "profiles": {**document["profiles"], _OF_VERSION_1: mine}}
    if first is not None and case.get("cordon", Cordon.NONE) != Cordon.NONE:
        found["cordon"] = {"whose": case["cordon"], "since": first["since"], "claims": claims}
    if first is not None and (person or case.get("drain")):
        drain = {"since": first["since"], "attempt": 1} if person else case["drain"]
        found["drain"] = {**drain, "claims": claims}
    return found


def _profile(document: Mapping[str, Any]) -> ProfileRecord:
    kept = decoded(ProfileRecord, document)
    if kept.open and kept.since is None:
        raise ValueError("a case has no start")
    hooks = tuple(sorted(kept.hooks, key=lambda hook: hook.id))
    return replace(kept, since=kept.since if kept.open else None, hooks=hooks)


def _forecast_out(forecast: Forecast) -> dict[str, Any]:
    document = encoded(forecast)
    if forecast.warns == forecast.since:
        del document["warns"]
    return document


def _forecast_in(document: Mapping[str, Any]) -> Forecast:
    return decoded(Forecast, {"warns": document["since"], **document})


class _Hook(Struct, frozen=True):
    """A hook's data beside its step and name, which are one text."""

    since: datetime
    kind: HookKind = HookKind.ANNOTATION
    end: HookEnd | None = None
    told: bool = False


def _hook_out(hook: HookRecord) -> dict[str, Any]:
    return {"hook": str(hook.id), **encoded(_Hook(hook.since, hook.id.kind, hook.end, hook.told))}


def _hook_in(document: Mapping[str, Any]) -> HookRecord:
    step, _, name = document["hook"].partition(".")
    kept = decoded(_Hook, document)
    return HookRecord(HookId(HookStep(step), limits.text(name), kept.kind), kept.since, kept.end, kept.told)


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


register(Forecast, _forecast_out, _forecast_in)
register(HookRecord, _hook_out, _hook_in)
register(Claims, _claims_out, _claims_in)
