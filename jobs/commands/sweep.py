"""`reconciler sweep`: one pass, for a CronJob. It ends when its drains end, or after a time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import click

from jobs import options
from jobs.runtime.acting import Acting, Yields
from jobs.runtime.clock import ServerClock, SystemClock
from jobs.runtime.environment import Target, connected
from jobs.runtime.log_line import lines_dropped
from jobs.runtime.looks import echo_lines
from jobs.runtime.output import echo, echo_document, echo_for_programs, for_programs, width
from jobs.runtime.outside import Wiring, reconciler_of
from jobs.runtime.process import Observers, Reported, Surroundings, options_of_features, processes
from jobs.runtime.settings_source import SettingsSource, settings_from
from jobs.runtime.supervised import ended_by_signals
from jobs.runtime.unblocked import unblock
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.errors import LockHeld
from reconciler.model.holds import INTERNAL
from reconciler.model.outcome import DRAIN, Outcome, Result
from reconciler.model.plan import Plan
from reconciler.model.ports import Clock
from reconciler.model.values import replace
from reconciler.report.acting import acting_lines
from reconciler.report.document import Report, as_json, summed, to_report
from reconciler.report.text import as_text
from reconciler.run import rehearse
from reconciler.settings.schema import Mode

# While drains run, the cluster is read again at this interval, because an event may be cancelled.
LOOK_AGAIN = timedelta(seconds=10)
# Seconds between two looks at a lock of which it is not known whether its holder lives.
LOOK_AT_LOCK = 0.5
# Seconds after which a warning names the holder. A holder that runs renews the lock every 2 seconds.
SILENT = 4.0
# How soon SIGTERM is noticed.
GLANCE = timedelta(seconds=0.5)
STRUCK = 4
"""The exit code when a pass finds out that a case is missed or late, and nothing failed."""


@click.command("sweep")
@options.config_source
@options.own_cluster
@click.option("--dry-run", is_flag=True, help="Write nothing, take no lock, and print what a pass would do.")
@click.option(
    "--for",
    "for_",
    type=options.DURATION,
    default="50s",
    show_default=True,
    help="How long drains may continue. The next sweep resumes them.",
)
@options_of_features("sweep")
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with 4 while a case is missed or late, not only in the pass that finds it out.",
)
@options.output
def command(
    config: SettingsSource,
    target: Target,
    dry_run: bool,
    for_: timedelta,
    given: Mapping[str, Any],
    strict: bool,
    output: str,
) -> int:
    """Run one pass over all nodes, for a CronJob.

    Further passes follow while its drains run, and the output has what all of them did.
    """
    return sweep(config, target, dry_run=dry_run, patience=for_, given=given, output=output, strict=strict)


def sweep(
    config: SettingsSource,
    target: Target,
    *,
    dry_run: bool,
    patience: timedelta,
    given: Mapping[str, Any],
    output: str,
    strict: bool = False,
) -> int:
    """Run a pass and its drains for at most `patience`. Return the exit code.

    `strict`: it is 4 while a case is missed or late, and not only when that is found out. In mode Observe,
    and in a dry run, no lock is taken. A dry run writes nothing, and a pass in mode Observe nothing but what
    features keep of it. `given` are the values of options of features; raises OutputError if one can't be
    followed.
    """
    # Its report on standard output is written when the lock is given back.
    unblock(("stderr",), lines_dropped)
    with Observers().add(Surroundings("sweep", given, _warn, target)) as observers:
        settings = settings_from(config, target, SystemClock().now(), acts=True)
        try:
            with connected(target, someone_waits=False) as connection:
                clock = ServerClock(connection)
                looking = Wiring(connection, target)
                if dry_run or settings.mode is Mode.OBSERVE:
                    reconciler = reconciler_of(connection, target, settings)
                    outside = replace(looking.to_read(settings), reconciler=reconciler)
                    plan, _ = observers.rehearsed(
                        settings, lambda: observers.timed(lambda: rehearse(outside, settings, clock.now()))
                    )
                    _print(to_report(plan, rehearsed=True), output)
                    reported = Reported(plan, settings, connection, target)
                    for process in processes() if not dry_run else ():
                        if process.looked is not None:
                            process.looked(reported, observers)
                    return _exit_code(failed=_broken(plan), struck=_struck(plan, strict=strict))
                acting = Acting(looking, settings, clock, observers)
                return _act(acting, clock, patience, Story(strict=strict), output, observers)
        except LockHeld as held:
            if for_programs(output):
                document = {"version": "v1", "lockedBy": held.holder, "nodes": [], "outcomes": []}
                echo_for_programs(as_json(document), output)
            else:
                echo(f"{held}; nothing was done")
            return 0


def _warn(message: str) -> None:
    echo(f"warning: {message}", err=True)


def _act(
    acting: Acting, clock: Clock, patience: timedelta, story: Story, output: str, observers: Observers
) -> int:
    stop = threading.Event()
    began = time.monotonic()
    try:
        with ended_by_signals(stop), _entered(acting, stop):
            # By now an answer has told the time. The wait for the lock counts.
            until = clock.now() + patience - timedelta(seconds=time.monotonic() - began)
            try:
                run_passes(acting, observers, clock, until, stop, story)
            finally:
                # Leaving ends the drains.
                story.drains = dict(acting.drainer.progress())
                observers.drains(story.drains)
    finally:
        # Also after an error: what was done before it has to be known.
        if (report := story.report()) is not None:
            _print(report, output)
    return _exit_code(failed=story.failed, struck=story.struck)


@contextmanager
def _entered(acting: Acting, stop: threading.Event) -> Iterator[None]:
    """Enter once the lock is free, and leave at the end.

    Raises LockHeld as soon as its holder is seen to live, or once `stop` is set.
    """
    silent, said = time.monotonic() + SILENT, False
    with ExitStack() as left:
        while True:
            try:
                left.enter_context(acting)
                break
            except LockHeld as held:
                if held.alive or stop.wait(min(held.again, LOOK_AT_LOCK)):
                    raise
                if not said and time.monotonic() >= silent:
                    said = True
                    _warn(f"{held.holder} has the lock; this sweep begins if it does not renew it")
        yield


def run_passes(
    acting: Acting, observers: Observers, clock: Clock, until: datetime, stop: threading.Event, story: Story
) -> None:
    """Run passes while drains run or features ask for something, until the time is up or `stop` is set.

    Raises what a pass raises.
    """

    def look() -> None:
        """Run a pass, whose cordons wait for nothing, and another one that waits, if an answer was late."""
        story.add(*observers.timed(acting.run_pass))
        if acting.late and not stop.is_set():
            story.add(*observers.timed(partial(acting.run_pass, waits=True)))

    seen = acting.drainer.progress(), acting.requests().answered
    yields = Yields()
    look()
    looked = clock.now()
    while not stop.is_set():
        over = clock.now() >= until
        drains, asks = acting.drains_run() and not over, acting.requests().waiting > 0
        if drains or asks:
            # What was asked is lost with the process, so it is awaited also when the time is up. A
            # request has a timeout of its own.
            ended = drains and acting.drainer.wait(GLANCE.total_seconds())
            if not drains:
                stop.wait(GLANCE.total_seconds())
            # A drain that gives its slot away lets the next node begin.
            yielded = [one for one in acting.drainer.progress().values() if yields.see(one)]
            due = drains and clock.now() - looked >= LOOK_AGAIN
            if not ended and not yielded and not due and acting.requests().answered == seen[1]:
                continue
        elif (acting.drainer.progress(), acting.requests().answered) == seen:
            return
        # Also when the time is up: record what has ended, and report what blocks the others.
        seen = acting.drainer.progress(), acting.requests().answered
        look()
        looked = clock.now()
        if over:
            return


class Story:
    """What a sweep did in all of its passes."""

    def __init__(self, *, strict: bool = False) -> None:
        """Begin before the first pass. `strict` counts a case that is missed or late in each pass."""
        self._strict = strict
        self._report: Report | None = None
        self.drains: dict[str, DrainProgress] = {}
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        self._broken = False
        self.struck = False

    def add(self, plan: Plan, outcomes: Iterable[Outcome]) -> None:
        """Add a pass. Each action is there once, with its last result: every pass orders each drain again."""
        report = to_report(plan, rehearsed=False)
        self._report = report if self._report is None else summed(self._report, report)
        self._outcomes |= {(outcome.node, outcome.action): outcome for outcome in outcomes}
        self._broken |= _broken(plan)
        self.struck |= _struck(plan, strict=self._strict)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Every action in the order of its first time, with what has become of it."""
        return ended_drains(tuple(self._outcomes.values()), self.drains)

    @property
    def failed(self) -> bool:
        """Whether something failed for some node."""
        drains = any(drain.phase is Phase.FAILED for drain in self.drains.values())
        return drains or self._broken or any(outcome.result is Result.FAILED for outcome in self.outcomes)

    def report(self) -> Report | None:
        """Return the report, None before the first pass."""
        return None if self._report is None else replace(self._report, outcomes=self.outcomes)


def ended_drains(outcomes: tuple[Outcome, ...], drains: Mapping[str, DrainProgress]) -> tuple[Outcome, ...]:
    """Return the outcomes with what has become of each drain: a pass only knows that it runs."""
    ended = []
    for outcome in outcomes:
        drain = drains.get(outcome.node)
        if outcome.action != DRAIN.name or outcome.result is not Result.RUNNING or drain is None:
            ended.append(outcome)
        else:
            result = _ENDS.get(drain.phase, Result.RUNNING)
            ended.append(replace(outcome, result=result, detail=drain.error))
    return tuple(ended)


_ENDS = {
    Phase.DRAINED: Result.DONE,
    Phase.FAILED: Result.FAILED,
    Phase.TIMED_OUT: Result.LATER,
    Phase.STOPPED: Result.LATER,
    Phase.NODE_GONE: Result.LATER,
}


def _exit_code(*, failed: bool, struck: bool) -> int:
    return 1 if failed else STRUCK if struck else 0


def _struck(plan: Plan, *, strict: bool) -> bool:
    """Whether this pass has found out that a case is missed or late; `strict`: whether one is."""
    if not strict:
        return any(node.struck for node in plan.nodes)
    outcomes = (node.outcome for node in plan.nodes)
    return any(outcome is not None and not outcome.result.good for outcome in outcomes)


def _broken(plan: Plan) -> bool:
    """Whether an error in this program kept a node from being judged."""
    return any(hold.code == INTERNAL.code for node in plan.nodes for hold in node.holds)


def _print(report: Report, output: str) -> None:
    plan = report.plan
    if not for_programs(output):
        zone = ZoneInfo(plan.settings.time_zone)
        echo_lines(acting_lines(plan.reconciler, plan.now, zone, width(output)))
    echo_document(report.document, output, partial(as_text, report))
