"""An explanation of one node or one pod, as a document and as one screen of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from reconciler import __version__
from reconciler.model.explanation import NodeExplanation, Obstacle, PodExplanation
from reconciler.model.moments import to_text
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.pod import PodDisruptionBudget
from reconciler.model.problems import BUDGETS
from reconciler.model.record import State
from reconciler.report.columns import FOR_PEOPLE, Row
from reconciler.report.document import node_document
from reconciler.report.text import node_heading, row, shown, zone_of
from reconciler.report.values import (
    Document,
    blocker_value,
    check_value,
    moment_value,
    preview_value,
    settings_value,
    unseen_line,
    unseen_value,
)

_SHOWN = 8
"""Obstacles, budgets of a pod, and checks of a workflow, on the screen."""

_LEAST = 3
"""Sentences about room on the screen."""

_LEFT_OUT = ("holds", "unknown", "preview")
"""Columns of a report that an explanation shows in its own words."""

_EVERY_DRAIN = ("evict", "delete", "skip", "keep", "wait", "refuse")


def to_document(plan: Plan, node: NodeExplanation | None, pod: PodExplanation | None = None) -> Document:
    """Return the explanation of a node, or of a pod and its node; moments are RFC 3339 in UTC."""
    return {
        "version": "v1",
        "program": __version__,
        "at": to_text(plan.now),
        "mode": plan.mode,
        "settings": settings_value(plan.settings, plan.now),
        "timeZone": plan.time_zone,
        "notes": list(plan.notes),
        "unseen": [unseen_value(one) for one in plan.unseen],
        "pod": _pod(pod, plan) if pod is not None else None,
        "node": _node(node) if node is not None else None,
    }


def _node(found: NodeExplanation) -> Document:
    return {
        **node_document(found.plan),
        "checks": [
            {**check_value(one), "reason": one.words, "holds": one.holds} for one in found.plan.checks
        ],
        "unmanaged": found.unmanaged or None,
        "outOfService": found.out_of_service or None,
        "readings": [
            {
                "source": one.source,
                "answer": one.answer,
                "because": one.because,
                "asOf": moment_value(one.as_of),
            }
            for one in found.sources
        ],
        "obstacles": [_obstacle(one) for one in found.obstacles],
        "drainRecord": _drain_record(found.plan),
        "drainNow": {"assumedKind": found.assumed or None, **(preview_value(found.drain) or {"pods": None})},
    }


def _drain_record(plan: NodePlan) -> Document | None:
    drain = plan.record.drain if plan.record is not None and plan.before is State.IN_MAINTENANCE else None
    if drain is None:
        return None
    return {
        "since": moment_value(drain.since),
        "attempt": drain.attempt,
        "done": moment_value(drain.done),
    }


def _pod(found: PodExplanation, plan: Plan) -> Document:
    pod, budgets = found.pod, found.budgets
    unseen = any(one.what == BUDGETS for one in plan.unseen)
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "node": pod.node or None,
        "phase": pod.phase,
        "ready": pod.ready,
        "owner": found.owner or None,
        "labels": dict(found.labels),
        "action": found.verdict.action,
        "reasons": list(found.verdict.reasons),
        "budgets": None if unseen else [_budget(one) for one in budgets],
        "refused": blocker_value(found.refused) if found.refused is not None else None,
        "obstacles": [_obstacle(one) for one in found.obstacles],
    }


def _budget(one: PodDisruptionBudget) -> Document:
    return {
        "budget": one.key,
        "allowed": one.allowed,
        "desired": one.desired,
        "healthy": one.healthy,
        "expected": one.expected,
    }


def _obstacle(one: Obstacle) -> Document:
    return {"code": one.code, "because": one.because, "until": moment_value(one.until), "who": one.who}


def as_text(document: Document, width: int | None = None) -> str:
    """Return the explanation as text; a line longer than `width` columns goes on below its own text."""
    lines = [f"{document['at']} · mode {document['mode']}, dry run: nothing is written"]
    lines += [f"could not see: {unseen_line(one)}" for one in document["unseen"]]
    pod, node = document["pod"], document["node"]
    if pod is not None:
        lines += ["", *_pod_lines(pod, node)]
    if node is not None:
        rows = _short_rows(node) if pod is not None else _rows(node)
        lines += ["", node_heading(node, would=True), *(row(label, text) for label, text in rows)]
    return shown(lines, zone_of(document), width)


def _rows(node: Document) -> Iterator[Row]:
    yield from _about(node)
    yield from _from_columns(node, FOR_PEOPLE)
    for one in node["readings"]:
        seen = f", last heartbeat {one['asOf']}" if one["asOf"] else ""
        because = f": {one['because']}" if one["because"] else ""
        yield "source", f"{one['source']}: {one['answer']}{because}{seen}"
    yield from _check_rows(node["checks"])
    for one in node["workflows"]:
        yield from _workflow_rows(one)
    yield from _obstacle_rows(node["obstacles"])
    yield from _drain_rows(node)


def _check_rows(checks: list[Document]) -> Iterator[Row]:
    """Yield a row for each check; those that only state that something is not so share the last one."""
    not_so = [one["check"] for one in checks if not one["holds"] and one["answer"] == "failed"]
    for one in checks:
        if one["check"] not in not_so:
            yield one["answer"] if one["holds"] else "fact", f"{one['check']}: {one['reason']}"
    if not_so:
        yield "fact", f"not so: {', '.join(not_so)}"


def _workflow_rows(workflow: Document) -> Iterator[Row]:
    """Yield the transitions out of the state of a workflow, and the answers of all their checks."""
    name = workflow["profile"]
    for one in workflow["transitions"][:_SHOWN]:
        condition = f", if {one['check']}" if one["check"] else ""
        yield "step", f"{name} to {one['to']}{condition}: {one['answer']}"
    for one in workflow["checks"][:_SHOWN]:
        until = f" (until {one['until']})" if one["until"] and one["until"] not in one["reason"] else ""
        yield one["answer"], f"{name} {one['check']}: {one['reason']}{until}"
    yield from _more(workflow["checks"], _SHOWN)


def _short_rows(node: Document) -> Iterator[Row]:
    yield from _about(node)
    yield from _from_columns(node, [one for one in FOR_PEOPLE if one.key in ("events", "schedule", "stays")])
    holds = {hold["check"] for hold in node["holds"]}
    yield from _obstacle_rows([one for one in node["obstacles"] if one["code"] in holds | {"source"}])


def _about(node: Document) -> Iterator[Row]:
    if node["unmanaged"]:
        yield "unmanaged", f"no pass acts on it: {node['unmanaged']}"
    if node["outOfService"]:
        yield "out", f"it takes no new pods: {node['outOfService']}"
    drain = node["drainRecord"]
    if drain:
        attempt = f", attempt {drain['attempt']}" if drain["attempt"] > 1 else ""
        yield "drain", f"done at {drain['done']}" if drain["done"] else f"began at {drain['since']}{attempt}"
    if not node["events"]:
        yield "event", "none: no source announces maintenance of this node"


def _from_columns(node: Document, columns: Any) -> Iterator[Row]:
    for column in columns:
        if column.rows is not None and column.key not in _LEFT_OUT:
            yield from column.rows(node[column.key], True)


def _obstacle_rows(obstacles: list[Document]) -> Iterator[Row]:
    for one in obstacles[:_SHOWN]:
        until = f" (until {one['until']})" if one["until"] and one["until"] not in one["because"] else ""
        # A source that can't be read may hold nothing.
        label = "unknown" if one["code"] == "source" else "blocked"
        yield label, f"{one['because']}{until}  [{one['code']}]"
        yield "ask", one["who"]
    yield from _more(obstacles, _SHOWN)


def _drain_rows(node: Document) -> Iterator[Row]:
    drain = node["drainNow"]
    if drain["pods"] is None:
        yield "drain", "what a drain would do is not known, because the pods could not be seen"
        return
    why = f" for a {drain['assumedKind']}" if drain["assumedKind"] else ""
    counted = Counter(pod["action"] for pod in drain["pods"])
    what = ", ".join(f"{action} {counted[action]}" for action in _EVERY_DRAIN if counted[action])
    yield "drain", f"a drain{why} now would {what}" if what else f"a drain{why} now would find no pod"
    if drain["assumedKind"]:
        for one in drain["blockers"][:_SHOWN]:
            yield "blocks", f"{one['pod']}: {one['because']}"
        yield from _more(drain["blockers"], _SHOWN)
    for text in drain["room"][:_LEAST]:
        yield "room", text
    yield from _more(drain["room"], _LEAST)
    for text in drain["groups"][:_LEAST]:
        yield "group", text
    yield from _more(drain["groups"], _LEAST)
    for one in drain["unknown"]:
        yield "unknown", unseen_line(one)


def _more(every: list[Any], most: int) -> Iterator[Row]:
    if len(every) > most:
        yield "", f"and {len(every) - most} more; --output json has all"


_ACTIONS = {
    "evict": "a drain of its node evicts it",
    "delete": "a drain of its node deletes it",
    "skip": "a drain of its node leaves it there",
    "keep": "a drain of its node keeps it",
    "wait": "a drain of its node waits for it",
    "refuse": "a drain of its node is refused because of it",
    "none": "no drain concerns it",
    "unknown": "what a drain of its node does with it is not known",
}


def _pod_lines(pod: Document, node: Document | None) -> Iterator[str]:
    where = f" on {pod['node']}" if pod["node"] else ""
    what = "a drain of its node can't evict it now" if pod["refused"] else _ACTIONS[pod["action"]]
    yield f"{pod['namespace']}/{pod['name']}{where}: {what}"
    for label, text in _pod_rows(pod, node):
        yield row(label, text)


def _pod_rows(pod: Document, node: Document | None) -> Iterator[Row]:
    ready = "ready" if pod["ready"] else "not ready"
    yield "pod", f"{pod['phase'] or 'in an unknown phase'}, {ready}"
    yield "owner", pod["owner"] or "none: it has no controller, so nothing creates it again"
    for key, value in pod["labels"].items():
        yield "label", f"{key}={value}"
    for reason in pod["reasons"]:
        yield "reason", reason
    yield from _budget_rows(pod)
    for one in pod["obstacles"]:
        yield "ask", one["who"]
    if node is not None:
        yield "when", _when(node)


def _budget_rows(pod: Document) -> Iterator[Row]:
    if pod["budgets"] is None:
        yield "budget", "not known, because the PodDisruptionBudgets could not be seen"
        return
    if pod["action"] in ("evict", "delete"):
        refused = pod["refused"]
        yield "now", f"refused: {refused['because']}" if refused else "no budget refuses its eviction"
    for one in pod["budgets"][:_SHOWN]:
        numbers = f"{one['desired']} of {one['expected']} pods must be healthy, {one['healthy']} are"
        yield "budget", f"{one['budget']}: {numbers}; {one['allowed']} may go now"
    yield from _more(pod["budgets"], _SHOWN)
    if not pod["budgets"]:
        yield "budget", "none selects it"


def _when(node: Document) -> str:
    schedule = node["schedule"]
    if node["stateBefore"] == "in-maintenance":
        return "its node is in maintenance"
    if not any(one["asksForDrain"] for one in node["events"]):
        return "no event requires a drain of its node"
    if schedule is not None and schedule["observed"] and schedule["plannedStart"]:
        return (
            f"nothing starts in mode Observe; the drain of its node would start at {schedule['plannedStart']}"
        )
    if "drain" in node["actions"]:
        return "the next pass begins the drain of its node"
    if schedule is not None and schedule["plannedStart"]:
        late = ", too late" if schedule["missed"] and not schedule["obstacles"] else ""
        return f"the drain of its node is planned for {schedule['plannedStart']}{late}"
    return "the drain of its node waits, see below"
