"""Checks of times: windows, pauses and deadlines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

from reconciler.calendar.occurrences import FOREVER, Run, joined
from reconciler.calendar.values import MIDNIGHT
from reconciler.features.workflows.check_types import (
    DeadlineCheck,
    KeylessCheck,
    TimeWindowCheck,
    WaitCheck,
    WaitExcludeCheck,
)
from reconciler.features.workflows.situation import WorkflowSituation, check_type
from reconciler.model.holds import NOBODY, SETTINGS
from reconciler.model.moments import shifted, to_text
from reconciler.profiles.vocabulary import CheckResult, failed, passed, unknown

_AFTER = timedelta(microseconds=1)

_AHEAD = 820
"""Days to look ahead: a date of one weekday that is excluded every year comes again within two years."""

_DAY = timedelta(days=1)


def openings(window: TimeWindowCheck, now: datetime) -> Iterator[Run]:
    """Yield when the window is open, from the run that ends after `now` on; runs that touch are one."""
    edge = now - timedelta(days=9)
    return joined(_each(window, edge), edge, now)


def _each(window: TimeWindowCheck, edge: datetime) -> Iterator[Run]:
    zone = window.time_zone
    first = edge.astimezone(zone).date() - _DAY
    overnight = window.end < window.start
    for step in range(_AHEAD):
        day = first + step * _DAY
        if day.weekday() not in window.weekdays or any(one.covers(day) for one in window.exclude):
            continue
        end = window.end.on(day, zone)
        if overnight:
            next_day = day + _DAY
            cut = any(one.covers(next_day) for one in window.exclude)
            end = MIDNIGHT.on(next_day, zone) if cut else window.end.on(next_day, zone)
        run = Run(window.start.on(day, zone), end)
        if run.start < run.end:
            yield run


@lru_cache(maxsize=64)
def opening(window: TimeWindowCheck, now: datetime) -> Run | None:
    """Return the run that is open at `now`, or the next one; None if there is none within two years."""
    return next(openings(window, now), None)


@lru_cache(maxsize=4096)
def reached(began: datetime, duration: timedelta, excluded: frozenset[int], zone: tzinfo) -> datetime | None:
    """Return the last moment at which no more than `duration` has passed since `began`, in UTC.

    No time passes on the excluded weekdays (Monday 0) of the zone. None: it is never reached.
    """
    if len(excluded) == 7:
        return None
    moment, left = began, duration
    while True:
        day = moment.astimezone(zone).date()
        midnight = MIDNIGHT.on(day + _DAY, zone)
        if day.weekday() not in excluded:
            if left < midnight - moment:
                return moment + left
            left -= midnight - moment
        moment = midnight


_WAITS = f"{NOBODY} after that time; or {SETTINGS}: `duration` of the check"


@check_type(
    "timeWindow",
    TimeWindowCheck,
    who=f"{NOBODY} when the window opens; or {SETTINGS}: `start`, `end` and `weekdays` of the check",
)
def time_window(config: TimeWindowCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass after the start and before the end of the window, as maintenance-controller has it."""
    run = opening(config, situation.now)
    if run is None:
        return failed("the window never opens within two years")
    if run.start < situation.now:
        end = run.end if run.end != FOREVER else None
        return passed(f"the window is open until {to_text(end)}" if end else "the window is always open", end)
    return failed(f"the window opens at {to_text(run.start)}", run.start + _AFTER)


@check_type(
    "window", KeylessCheck, who=f"{NOBODY} when a window opens; or {SETTINGS}: `windows` and `notAllowed`"
)
def window(_config: KeylessCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass inside a window of the settings (`windows`) and outside of every freeze (`notAllowed`)."""
    if situation.platform is None:
        return unknown("the windows of the settings are not read")
    openness = situation.platform.settings.calendar.at(situation.now, situation.node.labels)
    answer = passed if openness.open else failed
    return answer(openness.because, openness.changes_at)


@check_type("wait", WaitCheck, who=_WAITS)
def wait(config: WaitCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when more than the duration has passed since the profile entered its state."""
    until = shifted(situation.since, config.duration)
    state = f"{situation.state} since {to_text(situation.since)}"
    if situation.now > until:
        return passed(state)
    return failed(f"{state}; waits until {to_text(until)}", shifted(until, _AFTER))


@check_type("waitExclude", WaitExcludeCheck, who=_WAITS)
def wait_exclude(config: WaitExcludeCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when more than the duration has passed since the profile entered its state.

    No time passes on excluded days. maintenance-controller subtracts today twice if it is an excluded day,
    so that a node that has waited enough waits again; here it never does.
    """
    until = reached(situation.since, config.duration, config.exclude, config.time_zone)
    state = f"{situation.state} since {to_text(situation.since)}"
    if until is None:
        return failed("every day is excluded, so no time ever passes")
    if situation.now > until:
        return passed(state)
    return failed(f"{state}; waits until {to_text(until)}", shifted(until, _AFTER))


@check_type("deadline", DeadlineCheck, who=f"{NOBODY} at that moment; or {SETTINGS}: `within` of the check")
def deadline(config: DeadlineCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass from `within` before the first deadline of the node's events on."""
    platform = situation.platform
    if platform is None:
        return unknown("the events of the platform are not read")
    asking = [one for one in platform.judged if one.asks and one.starts]
    started = [one for one in asking if one.event.started]
    if started:
        return passed(f"{started[0].event.kind} has started")
    first = min((one.deadline for one in asking if one.deadline is not None), default=None)
    if first is None:
        if situation.silent:
            return unknown("; ".join(situation.silent))
        return failed("no event of the node has a deadline")
    begins = shifted(first, -config.within)
    if begins <= situation.now:
        return passed(f"the deadline is {to_text(first)}")
    return failed(f"the deadline is {to_text(first)}, which is later than {to_text(situation.now)}", begins)
