"""What a cloud said last, as text for our ConfigMap: VMs of one plan share an entry, since a wave is of many.

It only saves asking again. A text that can't be read is therefore taken for none.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime
from typing import Any

from reconciler.model.azure import CloudMemory, Planned, Scope, ScopeAnswer
from reconciler.model.moments import from_text, to_text

log = logging.getLogger(__name__)


def dump(memory: CloudMemory) -> str:
    """Return the memory as text, the same for the same memory; empty for an empty one."""
    if memory == CloudMemory():
        return ""
    document: dict[str, Any] = {"answers": [_answer_out(one) for one in memory.answers]}
    if memory.not_before:
        document["notBefore"] = to_text(memory.not_before)
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def load(text: str | None) -> CloudMemory:
    """Read the text; an empty memory where there is none, or nobody can read it."""
    if not text:
        return CloudMemory()
    try:
        document = json.loads(text)
        return CloudMemory(
            tuple(sorted((_answer_in(one) for one in document["answers"]), key=lambda one: one.scope)),
            _moment(document.get("notBefore")),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("what ARM said last can't be read, so it is asked anew: error=%r", error)
        return CloudMemory()


def _answer_out(answer: ScopeAnswer) -> dict[str, Any]:
    scope = answer.scope
    out: dict[str, Any] = {
        "scope": [scope.subscription, scope.group, scope.scale_set],
        "asked": to_text(answer.asked),
        "again": to_text(answer.again),
    }
    together: dict[Planned, list[str]] = {}
    for name, planned in answer.planned:
        together.setdefault(planned, []).append(name)
    if together:
        out["planned"] = [{**_planned_out(planned), "vms": vms} for planned, vms in together.items()]
    if answer.unseen:
        out["unseen"] = list(answer.unseen)
    if answer.problem:
        out["problem"] = answer.problem
    return out


def _planned_out(planned: Planned) -> dict[str, Any]:
    told = {
        "offered": planned.offered or None,
        "offerStart": to_text(planned.offer_start) if planned.offer_start else None,
        "offerEnd": to_text(planned.offer_end) if planned.offer_end else None,
        "start": to_text(planned.start) if planned.start else None,
        "end": to_text(planned.end) if planned.end else None,
        "result": planned.result or None,
    }
    return {key: value for key, value in told.items() if value is not None}


def _answer_in(document: dict[str, Any]) -> ScopeAnswer:
    subscription, group, scale_set = (str(part) for part in document["scope"])
    planned = [
        (str(name), _planned_in(together))
        for together in document.get("planned", ())
        for name in together["vms"]
    ]
    return ScopeAnswer(
        Scope(subscription, group, scale_set),
        asked=from_text(document["asked"]),
        again=from_text(document["again"]),
        planned=tuple(sorted(planned, key=lambda pair: pair[0])),
        unseen=tuple(str(name) for name in document.get("unseen", ())),
        problem=str(document.get("problem", "")),
    )


def _planned_in(document: dict[str, Any]) -> Planned:
    return Planned(
        offered=document.get("offered", False) is True,
        offer_start=_moment(document.get("offerStart")),
        offer_end=_moment(document.get("offerEnd")),
        start=_moment(document.get("start")),
        end=_moment(document.get("end")),
        result=str(document.get("result", "")),
    )


def _moment(text: str | None) -> datetime | None:
    return from_text(text) if text else None
