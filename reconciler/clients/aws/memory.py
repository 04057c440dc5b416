"""What EC2 said last, as text for our ConfigMap; a text that can't be read is taken for none."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from typing import Any

from reconciler.model.aws import AwsMemory, InstanceEvent, RegionAnswer
from reconciler.model.moments import from_text, to_text

log = logging.getLogger(__name__)


def dump(memory: AwsMemory) -> str:
    """Return the memory as text, the same for the same memory; empty for an empty one."""
    if not memory.answers:
        return ""
    return json.dumps([_out(one) for one in memory.answers], sort_keys=True, separators=(",", ":"))


def load(text: str | None) -> AwsMemory:
    """Read the text; an empty memory where there is none, or nobody can read it."""
    if not text:
        return AwsMemory()
    try:
        found = (_in(one) for one in json.loads(text))
        return AwsMemory(tuple(sorted(found, key=lambda one: one.region)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("what EC2 said last can't be read, so it is asked anew: error=%r", error)
        return AwsMemory()


def _out(answer: RegionAnswer) -> dict[str, Any]:
    out: dict[str, Any] = {
        "region": answer.region,
        "asked": to_text(answer.asked),
        "again": to_text(answer.again),
    }
    if answer.events:
        out["events"] = [_event_out(one) for one in answer.events]
    if answer.problem:
        out["problem"] = answer.problem
    return out


def _event_out(event: InstanceEvent) -> dict[str, Any]:
    told = {
        "instance": event.instance,
        "id": event.id,
        "code": event.code,
        "description": event.description,
        "notBefore": to_text(event.not_before) if event.not_before else "",
        "notAfter": to_text(event.not_after) if event.not_after else "",
        "latest": to_text(event.latest) if event.latest else "",
        "unreadable": event.unreadable,
    }
    return {key: value for key, value in told.items() if value}


def _in(document: dict[str, Any]) -> RegionAnswer:
    return RegionAnswer(
        str(document["region"]),
        from_text(document["asked"]),
        from_text(document["again"]),
        tuple(_event_in(one) for one in document.get("events", ())),
        str(document.get("problem", "")),
    )


def _event_in(document: dict[str, Any]) -> InstanceEvent:
    return InstanceEvent(
        instance=str(document["instance"]),
        id=str(document.get("id", "")),
        code=str(document.get("code", "")),
        description=str(document.get("description", "")),
        not_before=_moment(document.get("notBefore")),
        not_after=_moment(document.get("notAfter")),
        latest=_moment(document.get("latest")),
        unreadable=document.get("unreadable", False) is True,
    )


def _moment(text: str | None) -> datetime | None:
    return from_text(text) if text else None
