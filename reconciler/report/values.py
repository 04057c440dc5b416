"""Parts of a plan as plain values for JSON; `docs/output.md` describes every key."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from reconciler.model.case_outcome import CaseOutcome, CaseResult
from reconciler.model.content import SettingsVersion
from reconciler.model.drains import Blocker, DrainProgress
from reconciler.model.event import PlatformPlan
from reconciler.model.moments import to_text
from reconciler.model.plan import (
    CheckAnswer,
    Hold,
    JudgedEvent,
    NodePlan,
    Preview,
    Transition,
    WorkflowReport,
)
from reconciler.model.problems import Unseen
from reconciler.model.schedule import CaseSchedule, DrainObstacle

Document = dict[str, Any]


def transition_value(step: Transition) -> Document:
    """Return one step of a state machine."""
    return {
        "profile": step.profile,
        "from": step.before.value,
        "to": step.after.value,
        "because": step.because,
    }


def hold_value(hold: Hold) -> Document:
    """Return one reason why nothing is done now."""
    return {"check": hold.code, "reason": hold.reason, "until": moment_value(hold.until)}


def check_value(answer: CheckAnswer) -> Document:
    """Return one check's answer."""
    return {
        "check": answer.name,
        "answer": answer.verdict.value,
        "reason": answer.reason,
        "until": moment_value(answer.until),
    }


def workflow_value(report: WorkflowReport) -> Document:
    """Return one workflow of a node, with the answers of all its transitions."""
    return {
        "profile": report.profile,
        "stateBefore": report.before.value,
        "state": report.after.value,
        "since": to_text(report.since),
        "waits": report.waits or None,
        "transitions": [
            {
                "to": step.next.value,
                "check": step.check,
                "answer": step.verdict.value,
                "taken": step.taken,
            }
            for step in report.steps
        ],
        "checks": [{**check_value(one), "reason": one.words} for one in report.answers],
    }


def event_value(judged: JudgedEvent) -> Document:
    """Return an event with what the settings make of it."""
    event = judged.event
    return {
        "kind": event.kind.value,
        "status": event.status.value,
        "notBefore": moment_value(event.not_before),
        "durationSeconds": _seconds(event.duration),
        "ids": list(event.ids),
        "sources": list(event.sources),
        "description": event.description,
        "startedBy": event.initiator.value if event.initiator else None,
        "condition": event.condition or None,
        "disagreements": list(event.disagreements),
        "asksForDrain": judged.asks,
        "because": judged.because,
        "deadline": moment_value(judged.deadline),
        "mayStart": judged.may_start,
        "timing": judged.timing,
        "overruled": judged.overruled or None,
        "plan": _plan(event.plan) if event.plan else None,
    }


def _plan(plan: PlatformPlan) -> Document:
    return {
        "until": moment_value(plan.until),
        "offered": plan.offered,
        "offerStart": moment_value(plan.offer_start),
        "offerEnd": moment_value(plan.offer_end),
    }


def instruction_values(plan: NodePlan) -> list[Document]:
    """Return what people say about the node; `words` is null where a hold of the node says the same."""
    said, held = plan.instructions, {hold.code for hold in plan.holds}
    found = []
    if said.hold is not None:
        told = not held.isdisjoint({"notHeld", "notStopped"})
        found.append(("hold", said.hold.word, "" if told else said.hold.words(plan.node)))
    if said.deferral is not None:
        found.append(
            ("defer", said.deferral.word, "" if "notDeferred" in held else said.deferral.words(plan.node))
        )
    if said.approval is not None:
        found.append(("approve", said.approval.word, f"its drain is approved {said.approval.word}"))
    return [
        {
            "instruction": name,
            "by": word.by or None,
            "at": moment_value(word.at),
            "until": moment_value(word.until),
            "reason": word.reason,
            "words": words or None,
        }
        for name, word, words in found
    ]


def schedule_value(schedule: CaseSchedule | None) -> Document | None:
    """Return when a drain is planned to start, None where there is no case."""
    if schedule is None:
        return None
    return {
        "plannedStart": moment_value(schedule.planned_start),
        "latestStart": moment_value(schedule.latest_start),
        "window": schedule.window,
        "missed": schedule.missed,
        "because": schedule.because,
        "forecast": schedule.forecast.value,
        "forecastBecause": schedule.forecast_words or None,
        "obstacles": [obstacle_value(one) for one in schedule.prospect.obstacles],
        "started": schedule.started,
        "ends": moment_value(schedule.ends),
        "planFrom": moment_value(schedule.plan_from),
        "planUntil": moment_value(schedule.plan_until),
        "observed": schedule.observed,
    }


def obstacle_value(obstacle: DrainObstacle) -> Document:
    """Return what keeps pods on a node although its drain evicts them."""
    return {
        "code": obstacle.code.value,
        "pod": obstacle.pod,
        "pods": obstacle.pods,
        "owner": obstacle.owner or None,
        "budgets": list(obstacle.budgets),
        "certain": obstacle.certain,
        "because": obstacle.because,
        "remedy": obstacle.remedy,
    }


def outcome_value(outcome: CaseOutcome | None) -> Document | None:
    """Return the facts of a case, None where there is no case; `words` is null while nothing is settled."""
    if outcome is None:
        return None
    settled = outcome.result is not CaseResult.RUNNING or outcome.deadline_passed is not None
    return {
        "drained": moment_value(outcome.drained),
        "started": moment_value(outcome.started),
        "pods": outcome.pods,
        "met": outcome.met or None,
        "deadlinePassed": moment_value(outcome.deadline_passed),
        "words": outcome.words if settled else None,
    }


def progress_value(progress: DrainProgress | None) -> Document | None:
    """Return how far a drain is, None where there is none."""
    if progress is None:
        return None
    return {
        "phase": progress.phase.value,
        "total": progress.total,
        "gone": progress.gone,
        "evicted": progress.evicted,
        "blockers": [blocker_value(blocker) for blocker in progress.blockers],
        "warnings": list(progress.warnings),
        "escalations": list(progress.escalations),
        "error": progress.error or None,
    }


def preview_value(preview: Preview | None) -> Document | None:
    """Return what a drain would do, None where none is previewed."""
    if preview is None:
        return None
    return {
        "pods": [
            {"pod": pod.pod, "action": pod.action, "reasons": list(pod.reasons)} for pod in preview.pods
        ],
        "blockers": [blocker_value(blocker) for blocker in preview.blockers],
        "room": list(preview.room),
        "groups": list(preview.groups),
        "unknown": [unseen_value(one) for one in preview.unknown],
    }


def unseen_value(one: Unseen) -> Document:
    """Return what could not be read, the permission that it needs, and what is therefore not known."""
    return {
        "what": one.what,
        "needs": one.needs or None,
        "follows": one.follows,
        "because": one.because,
    }


def unseen_line(one: Document) -> str:
    """Return the value of `unseen_value` in one line for people."""
    reason = f"needs {one['needs']}" if one["needs"] else one["because"]
    return f"{one['what']} ({reason}): {one['follows']}"


def blocker_value(blocker: Blocker) -> Document:
    """Return one pod that stays, and why."""
    return {"pod": blocker.pod, "because": blocker.because, "budget": blocker.budget or None}


def settings_value(version: SettingsVersion | None, now: datetime) -> Document | None:
    """Return which settings are in force `now`, None where they are not from a file."""
    if version is None:
        return None
    age = version.age(now)
    return {
        "hash": version.hash,
        "loadedAt": moment_value(version.loaded),
        "ageSeconds": None if age is None else int(age.total_seconds()),
    }


def moment_value(moment: datetime | None) -> str | None:
    """Return the moment as RFC 3339 in UTC."""
    return to_text(moment) if moment else None


def _seconds(duration: timedelta | None) -> float | None:
    return duration.total_seconds() if duration is not None else None
