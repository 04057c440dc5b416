"""Whether and when pods move, and what keeps the others: as a value, and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from reconciler.calendar.values import time_left
from reconciler.drain.workloads import owner_of
from reconciler.model.explanation import Moves, NamespacePods, Obstacle, PodMove
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.model.plan import NodePlan, PodVerdict
from reconciler.model.pod import Pod
from reconciler.model.record import State
from reconciler.report.lines import Line
from reconciler.report.values import keys, moment_value

keys(PodMove, "pod node? owner? answer start because? who?")

NO_MAINTENANCE = "its node has no maintenance that requires a drain"

NOTHING_CREATES_IT = "it has no controller, so nothing creates it again"


def move_of(pod: Pod, node: NodePlan | None, verdict: PodVerdict, blocked: Obstacle | None) -> PodMove:
    """Return whether the pod moves: by the plan of its node, None without one, and what a drain does with it.

    `blocked` is what keeps the pod on the node although it has to go.
    """
    owner = owner_of(pod)

    def answer(moves: Moves, because: str = "", who: str = "", start: datetime | None = None) -> PodMove:
        return PodMove(pod.key, pod.node, owner, moves, start, because, who)

    if node is None:
        return answer(Moves.STAYS, "; ".join(verdict.reasons))
    schedule, unguarded = node.schedule, node.unguarded
    drain = node.record.drain if node.record is not None and node.before is State.IN_MAINTENANCE else None
    if schedule is None and unguarded is None and drain is None:
        return answer(Moves.STAYS, NO_MAINTENANCE)
    start = drain.since if drain is not None else schedule.planned_start if schedule is not None else None
    reasons = "; ".join(verdict.reasons)
    if drain is not None and drain.done is not None:
        left = f"the drain of its node ended at {moment_value(drain.done)} and left it there"
        return answer(Moves.STAYS, f"{left}: {reasons}" if reasons else left)
    if verdict.action == "skip":
        return answer(Moves.STAYS, reasons)
    observed = schedule is not None and schedule.observed and drain is None
    if unguarded is not None and not observed:
        return answer(Moves.BLOCKED, f"nobody drains its node: {unguarded.words}", unguarded.who)
    if verdict.action not in ("evict", "delete", "wait") and blocked is None:
        return answer(Moves.UNKNOWN, reasons or "what a drain does with it could not be seen", start=start)
    if blocked is not None:
        return answer(Moves.BLOCKED, blocked.because.removeprefix(f"{pod.key}: "), blocked.who, start)
    if verdict.action == "wait":
        return answer(Moves.WAITS, f"the drain waits until it ends by itself: {reasons}", start=start)
    if observed:
        because = "in mode Observe nobody drains its node; `mode: Enforce` lets the reconciler do it"
        return answer(Moves.STAYS, because, start=start)
    if schedule is not None and start is None:
        if not schedule.missed:
            return answer(Moves.WAITS, schedule.because)
        missed = f"its node will not be drained in time: {schedule.because}"
        return answer(Moves.BLOCKED, missed, schedule.who_starts)
    late = schedule is not None and schedule.missed and not schedule.by_pods
    said = ["too late for the date of the maintenance"] if late else []
    said += [] if owner else [NOTHING_CREATES_IT]
    return answer(Moves.MOVES, "; ".join(said), start=start)


def words(move: PodMove, now: datetime) -> str:
    """Return whether the pod moves, when, and why not, in a sentence without the pod. `now` is UTC."""
    start = move.start
    when = "now" if start is None or start <= now else f"{time_left(start, now)}, at {to_text(start)}"
    if move.answer is Moves.MOVES:
        because = f"; {move.because}" if move.because else ""
        return f"moves {when}{because}"
    coming = f"the drain of its node starts {when}" if start else ""
    if move.answer is Moves.STAYS and coming:
        # Nothing starts in mode Observe.
        coming = f"else the drain of its node would start {when}"
    return "; ".join(filter(None, (answer_words(move.answer, move.because), coming)))


_SAID = {
    Moves.MOVES: "moves",
    Moves.WAITS: "waits",
    Moves.BLOCKED: "does not move",
    Moves.STAYS: "stays",
    Moves.UNKNOWN: "whether it moves is not known",
}


def answer_words(answer: Moves, because: str) -> str:
    """Return whether a pod moves, and why not, without the moment."""
    mark = ";" if answer is Moves.MOVES else ":"
    return f"{_SAID[answer]}{mark} {because}" if because else _SAID[answer]


_COUNTED = {
    Moves.BLOCKED: "blocked",
    Moves.UNKNOWN: "unknown",
    Moves.MOVES: "will move",
    Moves.WAITS: "waiting",
    Moves.STAYS: "stay",
}


def counts(answers: Iterable[Moves]) -> str:
    """Return how many pods move, and how many do not: `1 blocked, 3 will move`."""
    counted = Counter(answers)
    return ", ".join(
        f"{counted[answer]} {word if counted[answer] > 1 else word.replace('stay', 'stays')}"
        for answer, word in _COUNTED.items()
        if counted[answer]
    )


def pod_lines(pods: NamespacePods, now: datetime) -> list[Line]:
    """Return a line for each pod with maintenance of its node, under one with the counts. `now` is UTC.

    Pods on other nodes are only counted. The lines are not folded, and their moments are RFC 3339.
    """
    blocked = any(move.answer is Moves.BLOCKED for move in pods.moves)
    lines = [Line(f"pods of {pods.namespace}: {counts(move.answer for move in pods.moves)}", blocked)]
    quiet = [move for move in pods.moves if move.because == NO_MAINTENANCE]
    for move in pods.moves:
        if move.because == NO_MAINTENANCE:
            continue
        who = f"; {move.who}" if move.who else ""
        # The namespace is in the line above.
        name = move.pod.partition("/")[2]
        lines.append(Line(f"{name} on {move.node} {words(move, now)}{who}", move.answer is Moves.BLOCKED))
    if quiet:
        nodes = count_of(len({move.node for move in quiet}), "node")
        lines.append(
            Line(f"{count_of(len(quiet), 'pod')} on {nodes} without maintenance that requires a drain")
        )
    return lines
