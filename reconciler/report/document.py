"""The report as a document for machines; `docs/output.md` has a heading for every key, and it only grows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from reconciler import __version__
from reconciler.model.actions import actions
from reconciler.model.drains import Blocker, DrainProgress
from reconciler.model.event import PlatformPlan
from reconciler.model.moments import to_text
from reconciler.model.outcome import Outcome
from reconciler.model.plan import JudgedEvent, NodePlan, Plan, Preview

Document = dict[str, Any]


def to_document(plan: Plan, outcomes: Iterable[Outcome] = (), *, rehearsed: bool) -> Document:
    """Return the report of one pass; `rehearsed` says that nothing was written."""
    outcomes = tuple(outcomes)
    return {
        "version": "v1",
        "program": __version__,
        "at": to_text(plan.now),
        "mode": plan.mode,
        "dryRun": rehearsed,
        "lookedAfter": plan.looked_after,
        "budget": {
            "places": plan.budget.limit,
            "taken": len(plan.budget.holders),
            "holders": [{"node": node, "because": because} for node, because in plan.budget.holders],
        },
        "notes": list(plan.notes),
        "nextChange": _moment(plan.next_change),
        "nodes": [_node(node) for node in plan.nodes],
        "outcomes": [
            {"node": one.node, "action": one.action, "result": one.result.value, "detail": one.detail}
            for one in outcomes
        ],
    }


def as_json(document: Document) -> str:
    """Return the document as indented JSON with a line's end."""
    return writable(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def writable(text: str) -> str:
    """Return the text so that it can be written as UTF-8: a request may hold half a surrogate pair."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _node(node: NodePlan) -> Document:
    return {
        "name": node.node,
        "zone": node.zone,
        "pool": node.pool,
        "state": node.after.value,
        "stateBefore": node.before.value,
        "cordoned": node.unschedulable,
        "actions": [action.value for action in actions(node)],
        "events": [_event(event) for event in node.events],
        "transitions": [
            {
                "profile": step.profile,
                "from": step.before.value,
                "to": step.after.value,
                "because": step.because,
            }
            for step in node.transitions
        ],
        "holds": [
            {"check": hold.code, "reason": hold.reason, "until": _moment(hold.until)} for hold in node.holds
        ],
        "checks": [
            {
                "check": answer.name,
                "answer": answer.verdict.value,
                "reason": answer.reason,
                "until": _moment(answer.until),
            }
            for answer in node.checks
        ],
        "unknown": list(node.unknowns),
        "kept": [_blocker(blocker) for blocker in node.kept],
        "drain": _progress(node.progress) if node.progress else None,
        "preview": _preview(node.preview) if node.preview else None,
    }


def _event(judged: JudgedEvent) -> Document:
    event = judged.event
    return {
        "kind": event.kind.value,
        "status": event.status.value,
        "notBefore": _moment(event.not_before),
        "durationSeconds": _seconds(event.duration),
        "ids": list(event.ids),
        "sources": list(event.sources),
        "description": event.description,
        "startedBy": event.initiator.value if event.initiator else None,
        "condition": event.condition or None,
        "disagreements": list(event.disagreements),
        "asksForDrain": judged.asks,
        "because": judged.because,
        "deadline": _moment(judged.deadline),
        "mayStart": judged.may_start,
        "timing": judged.timing,
        "overruled": judged.overruled or None,
        "plan": _plan(event.plan) if event.plan else None,
    }


def _plan(plan: PlatformPlan) -> Document:
    return {
        "until": _moment(plan.until),
        "offered": plan.offered,
        "offerStart": _moment(plan.offer_start),
        "offerEnd": _moment(plan.offer_end),
    }


def _progress(progress: DrainProgress) -> Document:
    return {
        "phase": progress.phase.value,
        "total": progress.total,
        "gone": progress.gone,
        "evicted": progress.evicted,
        "blockers": [_blocker(blocker) for blocker in progress.blockers],
        "warnings": list(progress.warnings),
        "escalations": list(progress.escalations),
        "error": progress.error or None,
    }


def _preview(preview: Preview) -> Document:
    return {
        "pods": [
            {"pod": pod.pod, "action": pod.action, "reasons": list(pod.reasons)} for pod in preview.pods
        ],
        "blockers": [_blocker(blocker) for blocker in preview.blockers],
        "room": list(preview.room),
    }


def _blocker(blocker: Blocker) -> Document:
    return {"pod": blocker.pod, "because": blocker.because, "budget": blocker.budget or None}


def _moment(moment: datetime | None) -> str | None:
    return to_text(moment) if moment else None


def _seconds(duration: timedelta | None) -> float | None:
    return duration.total_seconds() if duration is not None else None
