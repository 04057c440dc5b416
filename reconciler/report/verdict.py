"""What a person asks of a node first: what it is, by when, why, what to type, and what comes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from reconciler.calendar.values import format_duration, time_left, with_time_left
from reconciler.model.case_outcome import counted
from reconciler.model.event import MaintenanceEvent
from reconciler.model.explanation import NodeExplanation, Obstacle
from reconciler.model.instructions import resume_command
from reconciler.model.moments import to_text
from reconciler.model.plan import NodePlan
from reconciler.model.record import KnownEvent
from reconciler.model.unguarded import UnguardedWhy
from reconciler.model.values import replace
from reconciler.report.columns import Row
from reconciler.report.commands import commands_in
from reconciler.report.explain import FORECAST, MISSED, UNGUARDED
from reconciler.report.standing import Standing, kind_of_hold, standing
from reconciler.report.values import until_words

_MOST = 3
"""Obstacles, and commands, of one node."""


def _events(node: NodePlan) -> Sequence[MaintenanceEvent | KnownEvent]:
    # Of what requires no drain, there is no case.
    return node.case_events or [judged.event for judged in node.events]


def kinds_of(node: NodePlan) -> str:
    """Return the kinds of what is announced of a node, and the types of conditions; empty if nothing is."""
    return ", ".join(dict.fromkeys(event.condition or event.kind.value for event in _events(node)))


def comes_at(node: NodePlan) -> datetime | None:
    """Return when the platform started, or may start at the earliest, None if that is not known."""
    if node.outcome is not None and node.outcome.started is not None:
        return node.outcome.started
    return min((event.not_before for event in _events(node) if event.not_before is not None), default=None)


def announced(node: NodePlan, now: datetime) -> str:
    """Return what is announced of a node and when it comes, empty if nothing is: `Reboot in 14m, at …`."""
    kinds, date = kinds_of(node), comes_at(node)
    if not kinds:
        return ""
    if date is None:
        return kinds if any(event.condition for event in _events(node)) else f"{kinds} without a date"
    started = node.outcome is not None and node.outcome.started is not None
    return f"{kinds} started {_when(date, now)}" if started else f"{kinds} {_when(date, now)}"


def _when(moment: datetime, now: datetime) -> str:
    """Return a moment as a person needs it: how far away first, then when."""
    return f"{time_left(moment, now)}, at {to_text(moment)}"


def drain_begins(node: NodePlan, now: datetime) -> str:
    """Return when the drain of the node starts, empty if that is not known."""
    schedule = node.schedule
    if schedule is None or schedule.planned_start is None:
        return ""
    when = _when(schedule.planned_start, now) if schedule.planned_start > now else "now"
    return f"its drain {'would start' if schedule.observed else 'starts'} {when}"


def verdict(node: NodePlan, now: datetime) -> str:
    """Return in a sentence what the node is, what comes, and by when."""
    what, comes = standing(node), announced(node, now)
    behind = f": {comes}" if comes else ""
    schedule, outcome = node.schedule, node.outcome
    observed = schedule is not None and schedule.observed
    begins = drain_begins(node, now)
    begun = schedule is not None and schedule.started
    latest = schedule.latest_start if schedule is not None and not begun else None
    by = f"; its drain has to start {_when(latest, now)}" if latest is not None and latest > now else ""
    done = outcome.drained if outcome is not None else None
    drained = f"drained {_when(done, now)}" if done is not None else "drained"
    drain = node.record.drain if node.record is not None else None
    if done is not None and drain is not None and drain.done == done and done > drain.since:
        drained = f"{drained}, in {format_duration(done - drain.since)}"
    silent = node.unguarded is not None and node.unguarded.why is UnguardedWhy.SOURCE_SILENT
    over = not node.events and not silent
    match what:
        case Standing.WILL_BE_MISSED:
            return f"{'would' if observed else 'WILL'} BE MISSED{behind}{by}"
        case Standing.MISSED:
            pods = counted(outcome.pods, outcome.met) if outcome is not None else "pods were on it"
            return f"MISSED{behind}, while {pods}"
        case Standing.UNGUARDED if over and done is not None:
            return f"{what.upper()}: {drained}; its event is over"
        case Standing.UNGUARDED | Standing.BLOCKED:
            return f"{what.upper()}{behind}{f'; {begins}' if observed and begins and done is None else by}"
        case Standing.AT_RISK:
            return f"AT RISK{behind}; {begins}" if begins else f"AT RISK{behind}{by}"
        case Standing.PLANNED:
            return f"planned: {begins}, for the {comes}"
        case Standing.DRAINING:
            return f"draining, begun {_when(drain.since, now)}; {comes}" if drain else f"draining{behind}"
        case Standing.DRAINED:
            return f"{drained}; {comes if node.events else 'its event is over'}"
        case Standing.UNKNOWN:
            return "whether something is announced is not known"
        case Standing.QUIET:
            return "nothing is announced"
    return f"{what}{behind}{by}"


class Answer(Struct, frozen=True):
    """One reason why a node is not drained now: a label, the reason, who can change it, the commands."""

    label: str
    because: str
    who: str = ""
    commands: tuple[str, ...] = ()


_COMMAND_BEHIND = re.compile(r"; (?:reconciler|kubectl) [^;:]*?(?: ends that| does)(?=[ ;:(]|$)")
"""A command in a reason, which has a row of its own."""


def answers(node: NodePlan, obstacles: Iterable[Obstacle]) -> tuple[Answer, ...]:
    """Return why the node is not drained now, what waits for a person first; each reason once."""
    reasons: list[Answer] = []
    schedule, said = node.schedule, ""
    missed = standing(node) is Standing.MISSED
    planned = schedule is not None and schedule.planned_start is not None and not schedule.missed

    # Pods that stay for one reason share theirs, with how many more there are.
    grouped: list[Obstacle] = []
    pods: dict[str, list[Obstacle]] = {}
    for obstacle in obstacles:
        if obstacle.code == "pod":
            pods.setdefault(obstacle.because.partition(": ")[2], []).append(obstacle)
        else:
            grouped.append(obstacle)
    for because, same in pods.items():
        first = same[0]
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        grouped.append(replace(first, because=f"{first.because.partition(': ')[0]}{more}: {because}"))

    ordered = sorted(grouped, key=lambda obstacle: obstacle.by_itself)
    for obstacle in ordered:
        reason = _COMMAND_BEHIND.sub("", obstacle.because)
        about = reason.partition(": ")[2] or reason
        if about in said or (obstacle.code == "startPlanned" and (planned or len(ordered) > 1)):
            continue
        said = f"{said}\n{reason}"
        until = until_words(obstacle.until, reason)
        if obstacle.code == "leftToUs" and obstacle.until is not None and until:
            until = f"; it starts when that ends, at {to_text(obstacle.until)} at the latest"
        label = label_of(obstacle)
        if obstacle.code == MISSED and missed:
            # The verdict names the pods.
            reason = "pods were on the node when the platform started"
        # The first word of these reasons is their label.
        because = f"{reason.removeprefix(f'{label} ')}{until}  [{obstacle.code}]"
        ways = [way for way in obstacle.who.split("; or ") if not commands_in(way)]
        who = "" if obstacle.by_itself else "; or ".join(ways)
        reasons.append(Answer(label, because, who, commands_in(obstacle.who)))
    hold = node.status.instructions.hold
    if hold is not None and not any(answer.label in ("held", "UNGUARDED") for answer in reasons):
        because = _COMMAND_BEHIND.sub("", hold.words(node.node))
        reasons.insert(0, Answer("held", because, "", (resume_command(hold.word.scope, node.node),)))
    if schedule is None or schedule.started or schedule.by_pods:
        return tuple(reasons)
    because = _COMMAND_BEHIND.sub("", schedule.because)
    unguarded = node.unguarded is not None and not planned
    if because and because not in said and not unguarded:
        latest = schedule.latest_start
        if planned and latest is not None and latest != schedule.planned_start:
            because = f"{because} (latest start: {to_text(latest)})"
        reasons.insert(0, Answer("planned" if planned else "why", because))
    return tuple(reasons)


def label_of(obstacle: Obstacle) -> str:
    """Return the word for what an obstacle does."""
    code = obstacle.code
    if code == UNGUARDED:
        return "UNGUARDED"
    if code == "source":
        return "unknown"
    if code == MISSED:
        return "why"
    if code in ("budget", "pod", FORECAST):
        return "blocked"
    return kind_of_hold(code, by_itself=obstacle.by_itself).value


def answer_rows(explained: NodeExplanation, now: datetime) -> Iterator[Row]:
    """Yield why the node is not drained, with a command for each remedy, and what happens if nobody acts."""
    reasons = answers(explained.plan, explained.obstacles)
    typed: list[str] = []
    asked = {""}
    for answer in reasons[:_MOST]:
        yield answer.label, with_time_left(answer.because, now)
        if answer.who not in asked:
            asked.add(answer.who)
            yield "ask", answer.who
        for command in answer.commands:
            if command not in typed and len(typed) < _MOST:
                typed.append(command)
                yield "do", command
    if len(reasons) > _MOST:
        yield "", f"and {len(reasons) - _MOST} more; -o wide has all"
    if explained.then:
        yield "then", with_time_left(explained.then, now)
