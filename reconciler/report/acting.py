"""The first line of what people and programs read: who acts on the nodes, and whether that is so now."""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto
from textwrap import wrap
from zoneinfo import ZoneInfo

from reconciler.calendar.values import format_duration, in_zone
from reconciler.model.plan import Plan
from reconciler.model.reconciler import LOOK, OBSERVE, Reconciler, Running, pod_of, running
from reconciler.report.lines import Line
from reconciler.report.values import Document, keys, moment_value, plain

keys(
    Reconciler,
    "holder? lastPass running=runs state=running mode? cluster? context? "
    "intervalSeconds=interval because? needs? others yieldsTo? guardsLess=lost",
)


class By(Enum):
    """Who carries out the plan that is shown."""

    THIS_PASS = auto()
    """The pass that has made it."""

    NEXT_PASS = auto()
    """A reconciler that runs with the same mode: its next pass comes to the same plan."""

    NOBODY = auto()
    """It is a dry run."""


def carried_out(plan: Plan, *, rehearsed: bool) -> By:
    """Return who carries out a plan; `rehearsed` says that nothing was written."""
    if not rehearsed:
        return By.THIS_PASS
    acts, mode = plan.reconciler, plan.mode
    runs = acts.running is Running.RUNNING and acts.mode == mode != OBSERVE
    return By.NEXT_PASS if runs else By.NOBODY


def reconciler_value(reconciler: Reconciler) -> Document:
    """Return who acts on the nodes as plain values."""
    document: Document = plain(reconciler)
    return document


def acting_line(reconciler: Reconciler, now: datetime) -> Line:
    """Return who acts on the nodes `now` (aware), in a line; it is an alarm if nobody or two of them do."""
    words = _words(reconciler, now)
    if reconciler.others:
        words = f"{words}. TWO RECONCILERS ACT ON THESE NODES: {reconciler.beside}"
    if reconciler.lost:
        words = f"{words}. {lost_words(reconciler)}"
    where = cluster_words(reconciler.cluster, reconciler.context) if reconciler.cluster else ""
    alarm = not reconciler.acts or bool(reconciler.others or reconciler.lost)
    return Line(f"{words} · {where}" if where else words, alarm)


def lost_words(reconciler: Reconciler) -> str:
    """Return what the settings do not guard that those before did, and since when; empty if nothing."""
    if not reconciler.lost:
        return ""
    since = reconciler.seen.since if reconciler.seen is not None else None
    when = f" since {moment_value(since)}" if since is not None else ""
    return f"THE SETTINGS GUARD LESS THAN BEFORE{when}: {'; '.join(reconciler.lost)}"


def acting_lines(
    reconciler: Reconciler, now: datetime, zone: ZoneInfo, columns: int | None
) -> tuple[Line, ...]:
    """Return the same with moments in this zone, in lines of so many columns (None: any number)."""
    line = acting_line(reconciler, now)
    text = in_zone(line.text, zone)
    return tuple(Line(part, line.alarm) for part in (wrap(text, columns) if columns else (text,)))


def _words(reconciler: Reconciler, now: datetime) -> str:
    last = reconciler.last_pass
    ago = f"{format_duration(max(now - last, now - now))} ago" if last is not None else ""
    holder = pod_of(reconciler.holder)
    mode = f", mode {reconciler.mode}" if reconciler.mode else ""
    match reconciler.running:
        case Running.RUNNING:
            who = f", {holder} has the lock" if holder else ""
            return f"reconciler: runs, last pass {ago}{who}{mode}"
        case Running.OVERDUE:
            who = f"{holder} has the lock" if holder else "nobody has the lock"
            ended = f"the last pass ended at {moment_value(last)} ({ago})" if last else "no pass has ended"
            apart = (
                f", before that one came every {format_duration(reconciler.interval)}"
                if reconciler.interval
                else ""
            )
            return f"NO RECONCILER RUNS: {ended}{apart}; {who}. Nobody acts on any node now. Look: {LOOK}"
        case Running.NEVER:
            if elsewhere := running(reconciler.rivals):
                where = elsewhere[0].lock
                return f"reconciler: one runs in the namespace {where}, and none in {reconciler.lock}"
            return "reconciler: none has acted in this cluster yet"
    known = f"; the last pass that it knows of ended {ago}{mode}" if last is not None else ""
    return f"reconciler: whether one runs is not known: {reconciler.because}{known}"


def cluster_words(cluster: str, context: str) -> str:
    """Return which cluster this is, with the context of the kubeconfig if there is one."""
    return f"cluster {cluster}, context {context}" if context else f"cluster {cluster}"
