"""An explanation of one node or one pod, as a document and as one screen of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.values import time_left, with_time_left
from reconciler.model.explanation import (
    Moves,
    NodeExplanation,
    Obstacle,
    PodExplanation,
    PodPast,
    SeenEvent,
    SourceAnswer,
)
from reconciler.model.limits import count_of, first_of
from reconciler.model.moments import to_text
from reconciler.model.plan import Plan, Verdict
from reconciler.model.problems import BUDGETS
from reconciler.model.record import DrainRecord, State
from reconciler.model.unguarded import UnguardedWhy
from reconciler.report.acting import By, carried_out
from reconciler.report.columns import Column, NodeReport, Row, for_people, more
from reconciler.report.commands import commands_in
from reconciler.report.document import heading, node_report
from reconciler.report.explain import UNGUARDED
from reconciler.report.moves import NO_MAINTENANCE, NOTHING_CREATES_IT, words
from reconciler.report.standing import Standing, standing
from reconciler.report.text import node_heading, nothing_written, row, shown
from reconciler.report.values import (
    Document,
    check_values,
    keys,
    moment_value,
    plain,
    unseen_line,
    unseen_lines,
    until_words,
)
from reconciler.report.verdict import answer_rows, label_of, verdict

_SHOWN = 8
"""Budgets of a pod on the screen, and obstacles on a wide one."""

_LEAST = 3
"""Obstacles and sentences about room on the screen."""

_LEFT_OUT = ("holds", "unguarded", "unknown", "preview")
"""Columns of a report that an explanation shows in its own words."""

_DATED = ("event", "planned", "ends")
"""Rows whose first moment is the one that a person looks for, so it is also said how far away it is."""

_EVERY_DRAIN = ("evict", "delete", "skip", "keep", "wait", "refuse")


class Explanation(Struct, frozen=True):
    """The explanation of a node, or of a pod and its node if that exists.

    `past` is what is known of why the pod, or one of its name, was moved; it may be gone.
    """

    plan: Plan
    node: NodeExplanation | None
    pod: PodExplanation | None = None
    past: PodPast | None = None

    @property
    def document(self) -> Document:
        """The explanation as plain values; moments are RFC 3339 in UTC."""
        document: Document = plain(
            {
                **heading(self.plan),
                "notes": self.plan.notes,
                "unseen": self.plan.unseen,
                "pod": _pod(self.pod, self.plan) if self.pod is not None else None,
                "past": _past(self.past) if self.past is not None else None,
                "node": _node(self.node, self.plan.now) if self.node is not None else None,
            }
        )
        return document


keys(SeenEvent, "at reason message kind name ours")
keys(PodPast, "pod events unseen? unread")


def _past(past: PodPast) -> Document:
    successors = [{"pod": pod, "node": node or None} for pod, node in past.successors]
    drained = [{"node": node, "since": since, "done": done} for node, since, done in past.drained]
    moves = [dict(move.fields) for move in past.moves]
    document: Document = {**plain(past), "moves": moves, "successors": successors, "drained": plain(drained)}
    return document


def _node(explained: NodeExplanation, now: datetime) -> Document:
    checks = zip(check_values(explained.plan.checks), explained.plan.checks, strict=True)
    drain = _drain_of(explained)
    return {
        **node_report(explained.plan).document,
        "checks": [{**document, "holds": answer.holds} for document, answer in checks],
        "unmanaged": explained.unmanaged or None,
        "outOfService": explained.out_of_service or None,
        "readings": explained.sources,
        "obstacles": explained.obstacles,
        "verdict": verdict(explained.plan, now),
        "then": explained.then or None,
        "drainRecord": drain and {"since": drain.since, "attempt": drain.attempt, "done": drain.done},
        "drainNow": {"assumedKind": explained.assumed or None, **(plain(explained.drain) or {"pods": None})},
    }


def _drain_of(explained: NodeExplanation) -> DrainRecord | None:
    plan = explained.plan
    return plan.record.drain if plan.record is not None and plan.before is State.IN_MAINTENANCE else None


def _pod(explained: PodExplanation, plan: Plan) -> Document:
    pod = explained.pod
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "node": pod.node or None,
        "phase": pod.phase,
        "ready": pod.ready,
        "owner": explained.owner or None,
        "labels": dict(explained.labels),
        "move": explained.move,
        "action": explained.verdict.action,
        "reasons": explained.verdict.reasons,
        "budgets": None if _budgets_unseen(plan) else explained.budgets,
        "refused": explained.refused,
        "obstacles": explained.obstacles,
    }


def _budgets_unseen(plan: Plan) -> bool:
    return any(unseen.what == BUDGETS for unseen in plan.unseen)


def as_text(explained: Explanation, width: int | None = None, *, wide: bool = False) -> str:
    """Return the explanation as text; a line longer than `width` columns goes on below its own text.

    `wide`: also with every check, the answer of each source, and where the pods of a drain fit.
    """
    plan, zone = explained.plan, ZoneInfo(explained.plan.settings.time_zone)
    if not wide and (answer := list(_answer(explained))):
        return shown(answer, zone, width, now=plan.now, near=plan.now)
    by = carried_out(plan, rehearsed=True)
    lines = [f"{moment_value(plan.now)} · mode {plan.mode}, {nothing_written(by)}"]
    lines += unseen_lines(plan.unseen)
    node = node_report(explained.node.plan) if explained.node is not None else None
    if explained.pod is not None:
        lines += ["", *_pod_lines(explained.pod, explained.past, plan, wide=wide)]
    elif explained.past is not None:
        lines += ["", *_past_lines(explained.past, plan.now)]
    if explained.node is not None and node is not None:
        rows = (
            _rows(explained.node, node, by, plan.now)
            if explained.pod is None
            else _short_rows(explained.node, node, by, plan.now)
        )
        lines += ["", node_heading(node, by), *(row(label, text) for label, text in rows)]
    return shown(lines, zone, width, now=plan.now)


def _answer(explained: Explanation) -> Iterator[str]:
    """Yield the few lines that a person needs at night: what it is, why, what to type, what comes.

    There are none if neither a node nor a pod is explained.
    """
    plan, pod = explained.plan, explained.pod
    if pod is not None:
        yield from _pod_lines(pod, explained.past, plan, wide=False)
        yield from unseen_lines(plan.unseen)
        if explained.node is not None and pod.move.because != NO_MAINTENANCE:
            yield row("node", f"{pod.move.node}: {verdict(explained.node.plan, plan.now)}")
            if pod.move.answer in (Moves.WAITS, Moves.UNKNOWN):
                # What keeps the pod is what keeps the node.
                yield from (row(label, text) for label, text in answer_rows(explained.node, plan.now))
    elif explained.past is not None:
        yield from _past_lines(explained.past, plan.now)
    elif explained.node is not None:
        node = explained.node.plan
        place = [f"zone {node.zone}" if node.zone else "", f"pool {node.pool}" if node.pool else ""]
        where = ", ".join(part for part in place if part)
        yield f"{node.node}{f' ({where})' if where else ''}: {verdict(node, plan.now)}"
        yield from (row(label, text) for label, text in _answer_rows(explained.node, plan))
        yield from unseen_lines(plan.unseen)


def _answer_rows(explained: NodeExplanation, plan: Plan) -> Iterator[Row]:
    node, now, by = explained.plan, plan.now, carried_out(plan, rehearsed=True)
    if explained.unmanaged and node.unguarded is None:
        yield "unmanaged", f"no pass acts on it: {explained.unmanaged}"
    if explained.out_of_service:
        yield "out", f"it takes no new pods: {explained.out_of_service}"
    said = {hold.reason for hold in node.holds}
    for judged in node.events if not any(judged.asks for judged in node.events) else ():
        if judged.because not in said:
            yield "why", judged.because
    if standing(node) in (Standing.QUIET, Standing.UNKNOWN):
        yield "event", "none: no source announces maintenance of this node"
        unread = {obstacle.because.partition(" can't be read")[0] for obstacle in explained.obstacles}
        names: dict[str, list[str]] = {}
        for source in explained.sources:
            if source.source not in unread:
                names.setdefault(_answered(source), []).append(source.source)
        yield from (("source", f"{', '.join(same)}: {answer}") for answer, same in names.items())
    yield from answer_rows(explained, now)
    report = node_report(node)
    people = (said.words for said in report.instructions if said.words and said.name != "hold")
    yield from (("person", with_time_left(words, now)) for words in people)
    yield from _from_columns(report, [column for column in for_people() if column.explained], by, now)
    if explained.assumed or explained.drain is None or explained.drain.unknown:
        yield from _drain_rows(explained, wide=False)


def _answered(source: SourceAnswer) -> str:
    seen = f", last heartbeat {moment_value(source.as_of)}" if source.as_of else ""
    because = f": {source.because}" if source.because else ""
    return f"{source.answer}{because}{seen}"


def _rows(explained: NodeExplanation, node: NodeReport, by: By, now: datetime) -> Iterator[Row]:
    yield from _about(explained)
    yield from _from_columns(node, for_people(), by, now)
    yield from (("source", f"{source.source}: {_answered(source)}") for source in explained.sources)

    # The checks that only state that something is not so share the last row.
    checks = explained.plan.checks
    not_so = [check.name for check in checks if not check.holds and check.verdict is Verdict.FAILED]
    for check in checks:
        if check.name not in not_so:
            yield check.verdict.value if check.holds else "fact", f"{check.name}: {check.words}"
    if not_so:
        yield "fact", f"not so: {', '.join(not_so)}"

    for column in for_people():
        yield from column.details(node) if column.details is not None else ()

    yield from _obstacle_rows(explained.obstacles, _SHOWN)
    yield from _drain_rows(explained, wide=True)


def _short_rows(explained: NodeExplanation, node: NodeReport, by: By, now: datetime) -> Iterator[Row]:
    yield from _about(explained)
    columns = [column for column in for_people() if column.key in ("events", "schedule", "stays")]
    yield from _from_columns(node, columns, by, now)
    codes = {hold.code for hold in node.plan.holds} | {"source", UNGUARDED}
    yield from _obstacle_rows(
        [obstacle for obstacle in explained.obstacles if obstacle.code in codes], _LEAST
    )


def _about(explained: NodeExplanation) -> Iterator[Row]:
    if explained.unmanaged:
        yield "unmanaged", f"no pass acts on it: {explained.unmanaged}"
    if explained.out_of_service:
        yield "out", f"it takes no new pods: {explained.out_of_service}"
    drain = _drain_of(explained)
    if drain is not None and drain.done:
        yield "drain", f"done at {moment_value(drain.done)}"
    elif drain is not None:
        attempt = f", attempt {drain.attempt}" if drain.attempt > 1 else ""
        yield "drain", f"began at {moment_value(drain.since)}{attempt}"
    why = explained.plan.unguarded
    if not explained.plan.events and (why is None or why.why is not UnguardedWhy.SOURCE_SILENT):
        yield "event", "none: no source announces maintenance of this node"


def _from_columns(node: NodeReport, columns: Iterable[Column], by: By, now: datetime) -> Iterator[Row]:
    for column in columns:
        if column.rows is not None and column.key not in _LEFT_OUT:
            for label, text in column.rows(node, by):
                yield label, with_time_left(text, now) if label in _DATED else text


def _obstacle_rows(obstacles: Sequence[Obstacle], most: int) -> Iterator[Row]:
    # Those with the same person and command share a line for it.
    for who, group in groupby(obstacles[:most], lambda obstacle: obstacle.who):
        for obstacle in group:
            # A source that can't be read may hold nothing.
            label = label_of(obstacle)
            until = until_words(obstacle.until, obstacle.because)
            yield label, f"{obstacle.because}{until}  [{obstacle.code}]"
        yield "ask", who
    yield from more(obstacles, most)


def _drain_rows(explained: NodeExplanation, *, wide: bool) -> Iterator[Row]:
    drain = explained.drain
    if drain is None:
        yield "drain", "what a drain would do is not known, because the pods could not be seen"
        return
    why = f" for a {explained.assumed}" if explained.assumed else ""
    counted = Counter(pod.action for pod in drain.pods)
    what = ", ".join(f"{action} {counted[action]}" for action in _EVERY_DRAIN if counted[action])
    yield "drain", f"a drain{why} now would {what}" if what else f"a drain{why} now would find no pod"
    if explained.assumed:
        for blocker in drain.blockers[:_SHOWN]:
            yield "blocks", f"{blocker.pod}: {blocker.because}"
        yield from more(drain.blockers, _SHOWN)
    for label, texts in (("room", drain.room), ("group", drain.groups)) if wide else ():
        yield from ((label, text) for text in texts[:_LEAST])
        yield from more(texts, _LEAST)
    for unseen in drain.unknown:
        yield "unknown", unseen_line(unseen)


def _event_rows(events: Iterable[SeenEvent], now: datetime) -> Iterator[Row]:
    for event in list(events)[:_LEAST]:
        at = f"{time_left(event.at, now)}, at {to_text(event.at)}" if event.at is not None else "undated"
        said = f"{at}: {event.message} [{event.reason} on {event.kind} {event.name}]"
        yield "moved" if event.ours else "event", said


def _move_rows(past: PodPast, now: datetime) -> Iterator[Row]:
    """Yield how it was moved: as features have kept it, else as the Events of this program say."""
    for move in past.moves[:_LEAST]:
        yield "moved", f"{time_left(move.at, now)}, at {to_text(move.at)}: {move.words}"
    yield from more(past.moves, _LEAST)
    if not past.moves:
        yield from _event_rows([event for event in past.events if event.ours], now)


def _past_lines(past: PodPast, now: datetime) -> Iterator[str]:
    yield f"{past.pod}: there is no such pod now"
    rows = [*_move_rows(past, now), *(("unknown", sentence) for sentence in past.unread)]
    rows += _event_rows([event for event in past.events if not event.ours], now)
    if not past.moves and past.unseen:
        rows.append(("unknown", f"the Events of its namespace could not be read: {past.unseen}"))
    elif not past.moves and not past.events:
        rows.append(("moved", "no Event says why. The API server keeps Events for an hour by default"))
    if past.successors:
        most = first_of([f"{pod} on {node}" if node else pod for pod, node in past.successors], _LEAST)
        rows.append(("instead", f"its owner runs {most}"))
    if not past.moves and not any(event.ours for event in past.events):
        for node, since, done in past.drained[:_LEAST]:
            ended = f", ended {moment_value(done)}" if done is not None else ""
            rows.append(("drained", f"{node}: the drain began {moment_value(since)}{ended}"))
        rows.append(
            ("look", "the log of the reconciler has each drained node, in the lines with the event `case`")
        )
    for label, text in rows:
        yield row(label, text)


_WOULD = {
    "evict": "a drain would evict it",
    "delete": "a drain would delete it",
    "skip": "a drain would leave it there",
    "keep": "a drain would keep it",
    "wait": "a drain would wait for it",
    "refuse": "a drain would be refused because of it",
    "unknown": "what a drain would do with it is not known",
}


def _pod_lines(explained: PodExplanation, past: PodPast | None, plan: Plan, *, wide: bool) -> Iterator[str]:
    move = explained.move
    where = f" on {move.node}" if move.node else ""
    yield f"{move.pod}{where} {words(move, plan.now)}"
    for label, text in _pod_rows(explained, plan, wide=wide):
        yield row(label, text)
    # Of a pod that is there, only what this program did to it, or to one of its name.
    yield from (row(label, text) for label, text in (_move_rows(past, plan.now) if past is not None else ()))


def _pod_rows(explained: PodExplanation, plan: Plan, *, wide: bool) -> Iterator[Row]:
    move = explained.move
    for who in [move.who] if move.who else [obstacle.who for obstacle in explained.obstacles]:
        asked = "; ".join(part for part in who.split("; ") if not commands_in(part))
        if asked:
            yield "ask", asked
        yield from (("do", command) for command in commands_in(who))
    labels = ", ".join(f"{key}={value}" for key, value in explained.labels)
    yield "owner", f"{explained.owner or NOTHING_CREATES_IT}{f' ({labels})' if labels else ''}"
    if explained.move.because == NO_MAINTENANCE:
        yield "drain", _WOULD[explained.verdict.action]
    for reason in explained.verdict.reasons:
        if wide or reason not in explained.move.because:
            yield "reason", reason

    if _budgets_unseen(plan):
        yield "budget", "not known, because the PodDisruptionBudgets could not be seen"
    else:
        if explained.verdict.action in ("evict", "delete") and move.answer is not Moves.BLOCKED:
            refused = explained.refused
            yield "now", f"refused: {refused.because}" if refused else "no budget refuses its eviction"
        for budget in explained.budgets[:_SHOWN]:
            expected = count_of(budget.expected, "pod")
            numbers = f"{budget.desired} of {expected} must be healthy, {budget.healthy} are"
            yield "budget", f"{budget.key}: {numbers}; {budget.allowed} may go now"
        yield from more(explained.budgets, _SHOWN)
        if not explained.budgets:
            yield "budget", "none selects it"

    if wide:
        ready = "ready" if explained.pod.ready else "not ready"
        yield "pod", f"{explained.pod.phase or 'in an unknown phase'}, {ready}"
