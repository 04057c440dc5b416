"""What a report shows of a node: one table, from which the document, the text, Markdown and the log are made.

To add a column, add an entry to COLUMNS (and a heading in `docs/output.md`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from msgspec import Struct

from reconciler.model.actions import actions
from reconciler.model.outcome import ActionName
from reconciler.model.plan import NodePlan, WorkflowReport
from reconciler.model.record import State
from reconciler.report.values import (
    Document,
    blocker_value,
    check_value,
    event_value,
    hold_value,
    instruction_values,
    moment_value,
    outcome_value,
    preview_value,
    progress_value,
    schedule_value,
    transition_value,
    unseen_line,
    workflow_value,
)

FIRST, LAST = -1, 1
"""Places of a column for people: what is announced comes first, the pods of a drain come last."""

Row = tuple[str, str]
"""A label and a text; a label of nothing goes on with the row before."""


class Point(Struct, frozen=True):
    """A list item of Markdown; `code` is a name of ours that ends it in code type."""

    text: str
    code: str = ""


class Cell(Struct, frozen=True):
    """A column of Markdown's table; `text` makes the cell of the node's document.

    `would_header` and `would_text` are for a dry run, where they differ.
    """

    header: str
    text: Callable[[Document], str]
    would_header: str = ""
    would_text: Callable[[Document], str] | None = None

    def head(self, *, would: bool) -> str:
        """Return the header of the column."""
        return (self.would_header if would else "") or self.header

    def of(self, node: Document, *, would: bool) -> str:
        """Return the cell of a node; `would` says that nothing is written."""
        make = self.would_text if would and self.would_text is not None else self.text
        return make(node)


class LogField(Struct, frozen=True):
    """A field of the log's line for a node; a line is written when one of them changes."""

    key: str
    value: Callable[[NodePlan], Any]


class Column(Struct, frozen=True):
    """One key of a node's document, and how each form of the report shows its value.

    `heading` is a part of the text's line with the node's name, `rows` are the text's lines below it; `would`
    says that nothing is written. `points` are list items of Markdown. What is not given is not shown there.
    People read the columns in the order of `place`; ties keep the order of the document.
    """

    key: str
    value: Callable[[NodePlan], Any]
    heading: Callable[[Any], str] | None = None
    rows: Callable[[Any, bool], Iterable[Row]] | None = None
    points: Callable[[Any], Iterable[Point]] | None = None
    cell: Cell | None = None
    log: LogField | None = None
    place: int = 0


_ACTIONS = {
    ActionName.CORDON: "cordon",
    ActionName.UNCORDON: "uncordon",
    ActionName.DRAIN: "drain",
    ActionName.STOP_DRAIN: "stop the drain",
    ActionName.RECORD: "update its annotation",
    ActionName.RUN_HOOK: "run a hook",
    ActionName.PERFORM_MAINTENANCE: "ask Azure to do its maintenance now",
    ActionName.RAISE_POOL: "scale its pool up by one machine",
    ActionName.REPLACE_MACHINE: "delete its machine, so that its pool creates a new one",
    ActionName.PUBLISH: "update its published state",
    ActionName.CONDITIONS: "update its lifecycle conditions",
}


def event_line(event: Document) -> str:
    """Return an event in a line: what, when, how long, and which sources report it."""
    parts = [f"{event['condition'] or event['kind']} {event['status'].lower()}"]
    if event["notBefore"]:
        parts.append(f"not before {event['notBefore']}")
    if event["durationSeconds"] is not None:
        parts.append(f"for {event['durationSeconds']:g}s")
    if event["startedBy"] == "User":
        parts.append("started by a user")
    return f"{', '.join(parts)} ({', '.join(event['sources'])})"


def _fact_rows(facts: Document | None, _: bool) -> Iterator[Row]:
    if facts is not None and facts["words"] is not None:
        yield "outcome", facts["words"]


def _fact_points(facts: Document | None) -> Iterator[Point]:
    if facts is not None and facts["words"] is not None:
        yield Point(f"outcome: {facts['words']}")


def action_row(label: str, names: Iterable[str]) -> Iterator[Row]:
    """Yield the row of these actions, if there are any."""
    if text := ", ".join(_ACTIONS[ActionName(name)] for name in names):
        yield label, text


def _workflow_line(report: Document) -> str:
    """Return a workflow in a line: its name, its state, and what a chain waits for."""
    before, after = report["stateBefore"], report["state"]
    moved = after if before == after else f"{before} → {after}"
    waits = f", {report['waits']}" if report["waits"] else ""
    return f"{report['profile']}: {moved} since {report['since']}{waits}"


def _logged(report: WorkflowReport) -> Iterator[str]:
    """Yield a workflow for the log, with all answers if a person wants them."""
    yield f"{report.profile}: {report.after.value}"
    for one in report.answers if report.logged else ():
        yield f"{report.profile}: {one.name} {one.verdict.value}: {one.words}"


def _action_rows(names: list[str], would: bool) -> Iterator[Row]:
    return action_row("would" if would else "does", names)


def state_line(node: Document, *, would: bool) -> str:
    """Return the state of a node, and where it goes; `would` says that it does not go there now."""
    before, after = node["stateBefore"], node["state"]
    if before == after:
        return str(after)
    return f"{before}, would become {after}" if would else f"{before} → {after}"


def _state_now(node: Document) -> str:
    return str(node["state"])


def _state_would(node: Document) -> str:
    return state_line(node, would=True)


def _happens(node: Document) -> str:
    return ", ".join(node["actions"]) or ("held" if node["holds"] else "")


def _would_happen(node: Document) -> str:
    return f"would {', '.join(node['actions'])}" if node["actions"] else _happens(node)


def _deadline(plan: NodePlan) -> datetime | None:
    """Return the earliest deadline of the events that ask for a drain."""
    return min((one.deadline for one in plan.events if one.asks and one.deadline is not None), default=None)


def _event_rows(events: list[Document], _: bool) -> Iterator[Row]:
    for event in events:
        yield "event", event_line(event)
        if event["description"]:
            yield "", f"“{event['description']}”"
        for text in event["disagreements"]:
            yield "", f"sources differ: {text}"
        if not event["asksForDrain"]:
            yield "", event["because"]
        elif event["overruled"]:
            yield "overruled", f"{event['overruled']}; {event['timing']}"


def schedule_line(schedule: Document) -> str:
    """Return the planned start in a line, or why a case will not be served in time.

    In mode Observe it says what mode Enforce would do.
    """
    observed = schedule["observed"]
    if schedule["missed"]:
        return f"{'would' if observed else 'will'} be missed: {schedule['because']}"
    planned = schedule["plannedStart"]
    latest = schedule["latestStart"]
    starts = "would start at" if observed else "starts at"
    parts = [f"{starts} {planned}" if planned else "no start is planned"]
    if latest and latest != planned:
        parts.append(f"at the latest at {latest}")
    window = f" [{schedule['window']}]" if schedule["window"] else ""
    return f"{', '.join(parts)}{window}: {schedule['because']}"


def _schedule_rows(schedule: Document | None, _: bool) -> Iterator[Row]:
    if schedule is None:
        return
    if not schedule["started"]:
        yield "planned", schedule_line(schedule)
    if schedule["forecastBecause"] and (schedule["started"] or not schedule["missed"]):
        yield "forecast", f"{schedule['forecast']}: {schedule['forecastBecause']}"


def _schedule_points(schedule: Document | None) -> Iterator[Point]:
    return (Point(f"{label}: {text}") for label, text in _schedule_rows(schedule, False))


def _planned_start(plan: NodePlan) -> str | None:
    return moment_value(plan.schedule.planned_start) if plan.schedule is not None else None


def _turn(plan: NodePlan) -> str | None:
    """Return what gives a node its turn, None if it does not wait for one."""
    waits = plan.urgency is not None and plan.after is State.REQUIRED
    return str(plan.urgency) if waits else None


def _reasons(steps: list[Document]) -> list[str]:
    return [step["because"] for step in steps if step["because"]]


def _hold_rows(holds: list[Document], _: bool) -> Iterator[Row]:
    for hold in holds:
        until = f" (until {hold['until']})" if hold["until"] and hold["until"] not in hold["reason"] else ""
        yield "held", f"{hold['reason']}{until}  [{hold['check']}]"


def _said(instructions: list[Document]) -> list[str]:
    return [one["words"] for one in instructions if one["words"]]


def _drain_rows(drain: Document | None, _: bool) -> Iterator[Row]:
    if drain:
        yield "drain", f"{drain['phase']}: {drain['gone']} of {drain['total']} pods gone"
        for text in drain["warnings"]:
            yield "", text
        for text in drain["escalations"]:
            yield "escalated", text


def _kept(pods: list[Document]) -> list[str]:
    return [f"{pod['pod']}: {pod['because']}" for pod in pods]


def _preview_rows(preview: Document | None, _: bool) -> Iterator[Row]:
    if not preview:
        return
    counted = Counter(pod["action"] for pod in preview["pods"])
    what = ", ".join(f"{action} {count}" for action, count in sorted(counted.items()))
    yield "pods", f"would {what}" if what else "none"
    for pod in preview["pods"]:
        if pod["action"] == "wait":
            yield "wait", f"{pod['pod']}: {'; '.join(pod['reasons'])}"
    for one in preview["blockers"]:
        yield "blocked", f"{one['pod']}: {one['because']}"
    for text in preview["room"]:
        yield "room", text
    for text in preview["groups"]:
        yield "group", text
    for one in preview["unknown"]:
        yield "unknown", unseen_line(one)


def _preview_points(preview: Document | None) -> Iterator[Point]:
    # Markdown is for a ticket or a chat: it names no pod that just goes.
    named = ("blocked", "room", "group", "unknown")
    return (Point(f"{label}: {text}") for label, text in _preview_rows(preview, True) if label in named)


COLUMNS = (
    Column("name", lambda plan: plan.node, cell=Cell("node", lambda node: node["name"]), place=FIRST),
    Column(
        "zone",
        lambda plan: plan.zone,
        heading=lambda zone: f"zone {zone}" if zone else "",
        cell=Cell("zone", lambda node: node["zone"]),
        place=FIRST,
    ),
    Column("pool", lambda plan: plan.pool, heading=lambda pool: f"pool {pool}" if pool else ""),
    Column(
        "state",
        lambda plan: plan.after.value,
        cell=Cell("state", _state_now, would_text=_state_would),
        log=LogField("state", lambda plan: plan.after.value),
        place=FIRST,
    ),
    Column("stateBefore", lambda plan: plan.before.value),
    Column(
        "cordoned", lambda plan: plan.unschedulable, heading=lambda cordoned: "cordoned" if cordoned else ""
    ),
    Column(
        "outcome",
        lambda plan: plan.outcome.result.value if plan.outcome else None,
        cell=Cell("outcome", lambda node: node["outcome"] or ""),
        log=LogField("outcome", lambda plan: plan.outcome.result.value if plan.outcome else None),
        place=FIRST,
    ),
    Column(
        "facts",
        lambda plan: outcome_value(plan.outcome),
        rows=_fact_rows,
        points=_fact_points,
    ),
    Column(
        "actions",
        lambda plan: [action.value for action in actions(plan)],
        rows=_action_rows,
        cell=Cell("what happens", _happens, "what would happen", _would_happen),
        log=LogField("actions", lambda plan: [action.value for action in actions(plan)]),
    ),
    Column(
        "events",
        lambda plan: [event_value(judged) for judged in plan.events],
        rows=_event_rows,
        cell=Cell("event", lambda node: "; ".join(event_line(event) for event in node["events"])),
        log=LogField("events", lambda plan: [f"{one.event.kind} {one.event.status}" for one in plan.events]),
        place=FIRST,
    ),
    Column(
        "urgency",
        _turn,
        heading=lambda urgency: urgency or "",
    ),
    Column(
        "deadline",
        lambda plan: moment_value(_deadline(plan)),
        log=LogField("deadline", lambda plan: moment_value(_deadline(plan))),
    ),
    Column(
        "schedule",
        lambda plan: schedule_value(plan.schedule),
        rows=_schedule_rows,
        points=_schedule_points,
        log=LogField("plannedStart", _planned_start),
    ),
    Column(
        "instructions",
        instruction_values,
        rows=lambda said, _: (("person", text) for text in _said(said)),
        points=lambda said: (Point(text) for text in _said(said)),
        log=LogField("instructions", lambda plan: _said(instruction_values(plan))),
    ),
    Column(
        "transitions",
        lambda plan: [transition_value(step) for step in plan.transitions],
        rows=lambda steps, _: (("because", text) for text in _reasons(steps)),
        points=lambda steps: (Point(f"because: {text}") for text in _reasons(steps)),
        log=LogField("because", lambda plan: [step.because for step in plan.transitions]),
    ),
    Column(
        "holds",
        lambda plan: [hold_value(hold) for hold in plan.holds],
        rows=_hold_rows,
        points=lambda holds: (Point(f"held: {hold['reason']}", hold["check"]) for hold in holds),
        log=LogField("holds", lambda plan: [f"{hold.code}: {hold.reason}" for hold in plan.holds]),
    ),
    Column("checks", lambda plan: [check_value(answer) for answer in plan.checks]),
    Column(
        "workflows",
        lambda plan: [workflow_value(report) for report in plan.workflows],
        rows=lambda reports, _: (("workflow", text) for text in map(_workflow_line, reports)),
        points=lambda reports: (Point(f"workflow {text}") for text in map(_workflow_line, reports)),
        log=LogField("workflows", lambda plan: [text for one in plan.workflows for text in _logged(one)]),
    ),
    Column(
        "unknown",
        lambda plan: list(plan.unknowns),
        rows=lambda texts, _: (("unknown", text) for text in texts),
        points=lambda texts: (Point(f"unknown: {text}") for text in texts),
        log=LogField("unknown", lambda plan: list(plan.unknowns)),
    ),
    Column(
        "kept",
        lambda plan: [blocker_value(blocker) for blocker in plan.draining.kept],
        rows=lambda pods, _: (("kept", text) for text in _kept(pods)),
        points=lambda pods: (Point(f"kept: {text}") for text in _kept(pods)),
        place=LAST,
    ),
    Column(
        "stays",
        lambda plan: plan.draining.stays or None,
        rows=lambda text, _: [("drain", text)] if text else [],
        points=lambda text: [Point(text)] if text else [],
        log=LogField("stays", lambda plan: plan.draining.stays or None),
    ),
    Column("drain", lambda plan: progress_value(plan.draining.progress), rows=_drain_rows),
    Column(
        "preview",
        lambda plan: preview_value(plan.draining.preview),
        rows=_preview_rows,
        points=_preview_points,
        place=LAST,
    ),
)
"""The columns in the order of the document."""

FOR_PEOPLE = tuple(sorted(COLUMNS, key=lambda column: column.place))
"""The columns in the order in which people read them."""
