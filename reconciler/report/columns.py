"""What a report shows of a node: one table, from which the document, the text, Markdown and the log are made.

To add a column, add an entry to OF_THE_CORE (and a heading in `docs/output.md`). A feature has its columns in
the list COLUMNS of its `columns.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from msgspec import Struct, field

from reconciler import plugins
from reconciler.model.case_outcome import CaseOutcome
from reconciler.model.event import Initiator
from reconciler.model.instructions import Word
from reconciler.model.limits import count_of
from reconciler.model.outcome import ActionKind
from reconciler.model.plan import JudgedEvent, NodePlan, actions
from reconciler.model.record import State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.report.acting import By
from reconciler.report.standing import Standing, kind_of_hold, standing
from reconciler.report.values import (
    Document,
    keys,
    moment_value,
    plain,
    settled_words,
    unseen_line,
    until_words,
)

FIRST, LAST = -1, 1
"""Places of a column for people: what is announced comes first, the pods of a drain come last."""

Row = tuple[str, str]
"""A label and a text; a label of nothing goes on with the row before."""


class Instruction(Struct, frozen=True):
    """What a person says about a node; `words` is empty where a hold of the node says the same."""

    name: str
    word: Word
    words: str


keys(Instruction, "instruction=name by=word.by? at=word.at until=word.until reason=word.reason words?")


class NodeReport(Struct, frozen=True, dict=True):
    """What a report says about a node: its plan, and what follows from it."""

    plan: NodePlan
    actions: tuple[ActionKind, ...]
    outcome: CaseOutcome | None
    instructions: tuple[Instruction, ...]

    @staticmethod
    def of(plan: NodePlan) -> NodeReport:
        """Return the report of a plan."""
        said, held = plan.status.instructions, {hold.code for hold in plan.holds}
        instructions = []
        if said.hold is not None:
            known = not held.isdisjoint({"notHeld", "notStopped"})
            instructions.append(
                Instruction("hold", said.hold.word, "" if known else said.hold.words(plan.node))
            )
        if said.deferral is not None:
            words = "" if "notDeferred" in held else said.deferral.words(plan.node)
            instructions.append(Instruction("defer", said.deferral.word, words))
        for given in said.permissions:
            words = f"its drain was {given.kind.done} {given.word.once}"
            instructions.append(Instruction(given.kind.command, given.word, words))
        waiver = next((event.waiver for event in plan.events if event.waiver is not None), None)
        if waiver is not None:
            instructions.append(Instruction(waiver.name, waiver.word, waiver.words))
        return NodeReport(plan, actions(plan), plan.outcome, tuple(instructions))

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.plan.node

    @cached_property
    def standing(self) -> Standing:
        """What the node is."""
        return standing(self.plan)

    @cached_property
    def document(self) -> Document:
        """The report as plain values."""
        return {column.key: plain(column.value(self)) for column in columns().values()}


class Point(Struct, frozen=True):
    """A list item of Markdown; `code` is a name of ours that ends it in code type."""

    text: str
    code: str = ""


class Cell(Struct, frozen=True):
    """A column of Markdown's table; `text` makes the cell.

    `headers` are for plans that another pass carries out, or none, if they differ.
    """

    header: str
    text: Callable[[NodeReport, By], str]
    headers: Mapping[By, str] = field(default_factory=dict)


Rows = Callable[[NodeReport, By], Iterable[Row]]
Points = Callable[[NodeReport], Iterable[Point]]
Texts = Callable[[NodeReport], Iterable[str]]


class Column(Struct, frozen=True):
    """One key of a node's document, and how each form of the report shows its value.

    `heading` is a part of the text's line with the node's name, `rows` are the text's lines below it.
    `points` are list items of Markdown. `log` is the key of a field of the log,
    with the value or with `logged`; the log has a line for a node when one of them changes. What is not given
    is not shown there. People read the columns in the order of `place`; ties keep that of the document.

    Each explanation of a node has the rows of an `explained` column, a whole one also those of `details`. The
    column of a feature comes behind the one of the core with the key `after`, or at the end.
    """

    key: str
    value: Callable[[NodeReport], Any]
    heading: Callable[[NodeReport], str] | None = None
    rows: Rows | None = None
    points: Points | None = None
    cell: Cell | None = None
    log: str = ""
    logged: Callable[[NodeReport], Any] | None = None
    place: int = 0
    details: Callable[[NodeReport], Iterable[Row]] | None = None
    explained: bool = False
    after: str = ""


def with_texts(column: Column, label: str, texts: Texts, begin: str | None = None) -> Column:
    """Return the column with texts, each of which is a row with this label, and a list item of Markdown.

    `begin` is the beginning of the items, by default the label.
    """
    start = f"{label}: " if begin is None else begin
    return replace(
        column,
        rows=lambda node, _: ((label, text) for text in texts(node)),
        points=lambda node: (Point(f"{start}{text}") for text in texts(node)),
    )


def event_line(judged: JudgedEvent) -> str:
    """Return an event in a line: what, when, how long, and which sources report it."""
    event = judged.event
    parts = [f"{event.condition or event.kind} {event.status.lower()}"]
    if event.not_before:
        parts.append(f"not before {moment_value(event.not_before)}")
    if event.duration is not None:
        parts.append(f"for {event.duration.total_seconds():g}s")
    if event.cause.initiator is Initiator.USER:
        parts.append("started by a user")
    return f"{', '.join(parts)} ({', '.join(event.sources)})"


def _unguarded(node: NodeReport) -> list[str]:
    why = node.plan.unguarded
    return [f"{why.words}; {why.who}"] if why is not None else []


def _facts(node: NodeReport) -> Iterator[str]:
    words = settled_words(node.outcome)
    if words is not None:
        yield words


def _outcome(node: NodeReport) -> str | None:
    return node.outcome.result.value if node.outcome else None


def more(values: Sequence[Any], most: int) -> Iterator[Row]:
    """Yield the row that says how many of the values are left out of so many rows; none if they all fit."""
    if len(values) > most:
        yield "", f"and {len(values) - most} more; --output json has all"


def action_row(label: str, kinds: Iterable[ActionKind]) -> Iterator[Row]:
    """Yield the row of these actions, if there are any."""
    if text := ", ".join(kind.words for kind in kinds):
        yield label, text


def _action_rows(node: NodeReport, by: By) -> Iterator[Row]:
    for label, text in action_row("would" if by is By.NOBODY else "does", node.actions):
        yield label, f"{text} (by the reconciler, in its next pass)" if by is By.NEXT_PASS else text


def _happens(node: NodeReport, by: By) -> str:
    if not node.actions:
        return ", ".join(
            dict.fromkeys(kind_of_hold(hold.code, by_itself=hold.by_itself) for hold in node.plan.holds)
        )
    return f"{'would ' if by is By.NOBODY else ''}{', '.join(kind.name for kind in node.actions)}"


def state_line(node: NodeReport, by: By) -> str:
    """Return the state of a node, and where it goes by whom."""
    before, after = node.plan.before, node.plan.after
    if before is after:
        return after.value
    if by is By.THIS_PASS:
        return f"{before} → {after}"
    return (
        f"{before}, would become {after}"
        if by is By.NOBODY
        else f"{before}, becomes {after} in the next pass"
    )


def _deadline(node: NodeReport) -> str | None:
    deadlines = (judged.deadline for judged in node.plan.events if judged.asks)
    return moment_value(min((moment for moment in deadlines if moment is not None), default=None))


def _event_rows(node: NodeReport, _: By) -> Iterator[Row]:
    for judged in node.plan.events:
        event = judged.event
        yield "event", event_line(judged)
        if event.cause.description:
            yield "", f"“{event.cause.description}”"
        for text in event.disagreements:
            yield "", f"sources differ: {text}"
        if not judged.asks:
            yield "", judged.because
        elif judged.opening.overruled:
            yield "overruled", f"{judged.opening.overruled}; {judged.opening.words}"


def schedule_line(schedule: CaseSchedule) -> str:
    """Return the planned start in a line, or why a case will not be served in time.

    In mode Observe it says what mode Enforce would do.
    """
    if schedule.missed:
        return f"{'would' if schedule.observed else 'will'} be missed: {schedule.because}{schedule.offer}"
    planned, latest = moment_value(schedule.planned_start), moment_value(schedule.latest_start)
    starts = "would start at" if schedule.observed else "starts at"
    parts = [f"{starts} {planned}" if planned else "no start is planned"]
    if latest and latest != planned:
        start, last = schedule.planned_start, schedule.latest_start
        late = start is not None and last is not None and start > last
        parts.append(f"after its latest start at {latest}" if late else f"at the latest at {latest}")
    window = f" [{schedule.window}]" if schedule.window else ""
    return f"{', '.join(parts)}{window}: {schedule.because}"


def _schedule_rows(node: NodeReport, _: By) -> Iterator[Row]:
    schedule = node.plan.schedule
    if schedule is None:
        return
    if not schedule.started:
        yield "planned", schedule_line(schedule)
    if schedule.ending:
        yield "ends", schedule.ending
    if schedule.forecast_words and (schedule.started or not schedule.missed):
        yield "forecast", f"{schedule.forecast}: {schedule.forecast_words}"


def _planned_start(node: NodeReport) -> str | None:
    return moment_value(node.plan.schedule.planned_start) if node.plan.schedule is not None else None


def _turn(node: NodeReport) -> str | None:
    waits = node.plan.status.urgency is not None and node.plan.after is State.REQUIRED
    return str(node.plan.status.urgency) if waits else None


def _reasons(node: NodeReport) -> list[str]:
    return [step.because for step in node.plan.transitions if step.because]


def _hold_rows(node: NodeReport, _: By) -> Iterator[Row]:
    for hold in node.plan.holds:
        label = kind_of_hold(hold.code, by_itself=hold.by_itself).value
        # The first word of some reasons is their label.
        reason = hold.reason.removeprefix(f"{label} ")
        yield label, f"{reason}{until_words(hold.until, hold.reason)}  [{hold.code}]"


def _said(node: NodeReport) -> list[str]:
    return [instruction.words for instruction in node.instructions if instruction.words]


def _unknowns(node: NodeReport) -> tuple[str, ...]:
    return node.plan.unknowns


def _drain_rows(node: NodeReport, _: By) -> Iterator[Row]:
    drain = node.plan.draining.progress
    if drain is not None:
        yield "drain", f"{drain.phase}: {drain.gone} of {count_of(drain.total, 'pod')} gone"
        for text in drain.warnings:
            yield "", text
        for text in drain.escalations:
            yield "escalated", text


def _kept(node: NodeReport) -> list[str]:
    return [f"{blocker.pod}: {blocker.because}" for blocker in node.plan.draining.kept]


def _stays(node: NodeReport) -> list[str]:
    return [node.plan.draining.stays] if node.plan.draining.stays else []


def _preview_rows(node: NodeReport, by: By) -> Iterator[Row]:
    preview = node.plan.draining.preview
    if preview is None:
        return
    counted = Counter(pod.action for pod in preview.pods)
    what = ", ".join(f"{action} {count}" for action, count in sorted(counted.items()))
    yield "pods", f"{'would ' if by is By.NOBODY else ''}{what}" if what else "none"
    for pod in preview.pods:
        if pod.action == "wait":
            yield "wait", f"{pod.pod}: {'; '.join(pod.reasons)}"
    for blocker in preview.blockers:
        yield "blocked", f"{blocker.pod}: {blocker.because}"
    for label, texts in (("room", preview.room), ("group", preview.groups)):
        yield from ((label, text) for text in texts)
    for unseen in preview.unknown:
        yield "unknown", unseen_line(unseen)


def _points(rows: Rows, *labels: str) -> Points:
    return lambda node: (
        Point(f"{label}: {text}") for label, text in rows(node, By.THIS_PASS) if not labels or label in labels
    )


OF_THE_CORE = (
    Column("name", lambda node: node.name, cell=Cell("node", lambda node, _: node.name), place=FIRST),
    Column(
        "zone",
        lambda node: node.plan.zone,
        heading=lambda node: f"zone {node.plan.zone}" if node.plan.zone else "",
        cell=Cell("zone", lambda node, _: node.plan.zone),
        place=FIRST,
    ),
    Column(
        "pool",
        lambda node: node.plan.pool,
        heading=lambda node: f"pool {node.plan.pool}" if node.plan.pool else "",
    ),
    Column(
        "state",
        lambda node: node.plan.after,
        cell=Cell(
            "state", lambda node, by: node.plan.after.value if by is By.THIS_PASS else state_line(node, by)
        ),
        log="state",
        place=FIRST,
    ),
    Column("stateBefore", lambda node: node.plan.before),
    Column("standing", lambda node: node.standing),
    Column(
        "cordoned",
        lambda node: node.plan.status.unschedulable,
        heading=lambda node: "cordoned" if node.plan.status.unschedulable else "",
    ),
    Column(
        "outcome",
        _outcome,
        cell=Cell("outcome", lambda node, _: _outcome(node) or ""),
        log="outcome",
        place=FIRST,
    ),
    with_texts(Column("facts", lambda node: node.outcome), "outcome", _facts),
    with_texts(
        Column(
            "unguarded",
            lambda node: node.plan.unguarded,
            log="unguarded",
            logged=lambda node: node.plan.unguarded.why.value if node.plan.unguarded is not None else None,
            place=FIRST,
        ),
        "UNGUARDED",
        _unguarded,
    ),
    Column(
        "actions",
        lambda node: [kind.name for kind in node.actions],
        rows=_action_rows,
        cell=Cell(
            "what happens",
            _happens,
            {By.NEXT_PASS: "what the reconciler does in its next pass", By.NOBODY: "what would happen"},
        ),
        log="actions",
    ),
    Column(
        "events",
        lambda node: node.plan.events,
        rows=_event_rows,
        cell=Cell("event", lambda node, _: "; ".join(map(event_line, node.plan.events))),
        log="events",
        logged=lambda node: [f"{judged.event.kind} {judged.event.status}" for judged in node.plan.events],
        place=FIRST,
    ),
    Column("urgency", _turn, heading=lambda node: _turn(node) or ""),
    Column("deadline", _deadline, log="deadline"),
    Column(
        "schedule",
        lambda node: node.plan.schedule,
        rows=_schedule_rows,
        points=_points(_schedule_rows),
        log="plannedStart",
        logged=_planned_start,
    ),
    with_texts(
        Column("instructions", lambda node: node.instructions, log="instructions", logged=_said),
        "person",
        _said,
        "",
    ),
    with_texts(
        Column(
            "transitions",
            lambda node: node.plan.transitions,
            log="because",
            logged=lambda node: [step.because for step in node.plan.transitions],
        ),
        "because",
        _reasons,
    ),
    Column(
        "holds",
        lambda node: node.plan.holds,
        rows=_hold_rows,
        points=lambda node: (
            Point(f"{kind_of_hold(hold.code, by_itself=hold.by_itself)}: {hold.reason}", hold.code)
            for hold in node.plan.holds
        ),
        log="holds",
        logged=lambda node: [f"{hold.code}: {hold.reason}" for hold in node.plan.holds],
    ),
    Column("checks", lambda node: node.plan.checks),
    with_texts(Column("unknown", _unknowns, log="unknown"), "unknown", _unknowns),
    with_texts(Column("kept", lambda node: node.plan.draining.kept, place=LAST), "kept", _kept),
    with_texts(
        Column("stays", lambda node: node.plan.draining.stays or None, log="stays", explained=True),
        "drain",
        _stays,
        "",
    ),
    Column("drain", lambda node: node.plan.draining.progress, rows=_drain_rows),
    Column(
        "preview",
        lambda node: node.plan.draining.preview,
        rows=_preview_rows,
        # Markdown is for a ticket or a chat: it names no pod that just goes.
        points=_points(_preview_rows, "blocked", "room", "group", "unknown"),
        place=LAST,
    ),
)
"""The columns of the core in the order of the document."""


@cache
def columns() -> Mapping[str, Column]:
    """Return every column by its key, in the order of the document.

    Raises ValueError, which names the file, if a column comes behind one that there is not, and both files if
    two have one key, or one name in the log.
    """
    core = ("reconciler/report/columns.py", OF_THE_CORE)
    brought = [(plugins.file_of(module), module.COLUMNS) for module in plugins.modules("columns")]
    known = plugins.by_name("column", (core, *brought), lambda column: column.key)
    logged = [(file, [column.log for column in given if column.log]) for file, given in (core, *brought)]
    plugins.by_name("field of the log", logged, str)
    order = [column.key for column in OF_THE_CORE]
    for file, given in brought:
        for column in given:
            if column.after and column.after not in order:
                raise ValueError(f"{file}: the column {column.key} is after {column.after}: no such column")
            order.insert(order.index(column.after) + 1 if column.after else len(order), column.key)
    return {key: known[key] for key in order}


@cache
def for_people() -> tuple[Column, ...]:
    """Return the columns in the order in which people read them."""
    return tuple(sorted(columns().values(), key=lambda column: column.place))


def log_fields(node: NodePlan) -> dict[str, Any]:
    """Return the fields that the log has of a node."""
    report = NodeReport.of(node)
    return {
        column.log: column.logged(report) if column.logged is not None else plain(column.value(report))
        for column in for_people()
        if column.log
    }
