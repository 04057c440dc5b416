"""Whether a drain may start at a moment: inside a window of the node, and not during a freeze.

Windows add up. On a node that no window selects, a drain may start at any time. A freeze wins over every
window. A deadline wins over a freeze, unless the freeze is `absolute`.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, takewhile
from threading import Lock

from msgspec import Struct

from reconciler.calendar.occurrences import (
    BEGINNING,
    FOREVER,
    HORIZON,
    KEPT,
    Always,
    Named,
    Run,
    Span,
    Times,
    subtract,
    union,
)
from reconciler.calendar.outlook import ANY_TIME, Opening, Outlook
from reconciler.model.moments import to_text
from reconciler.model.selector import EVERYTHING, LabelSelector

_LOOK_BACK = timedelta(days=9)
_NAMED_AT_MOST = 3


class Window(Struct, frozen=True):
    """When drains may start on the selected nodes. `unread` says why its times are not known."""

    name: str
    times: Times
    selector: LabelSelector = EVERYTHING
    unread: str = ""


class NotAllowed(Struct, frozen=True):
    """A freeze: when drains may not start on the selected nodes, and why."""

    name: str
    times: Times
    reason: str = ""
    absolute: bool = False
    selector: LabelSelector = EVERYTHING


class Openness(Struct, frozen=True):
    """Whether a drain may start now, and why.

    `because` is the reason as a sentence. `window` is the open window (the first one in the settings), or
    None if no window is open or needed. `not_allowed` is the first freeze that applies. `absolute` is True
    if any freeze that applies is absolute. `changes_at` (UTC) is the next moment at which any of this
    changes, or None if nothing changes within 400 days.
    """

    open: bool
    because: str
    window: str | None = None
    not_allowed: str | None = None
    absolute: bool = False
    changes_at: datetime | None = None


class Closure(Struct, frozen=True):
    """A stretch of time of one freeze, [start, end), UTC. `end` is None if it has none."""

    start: datetime
    end: datetime | None
    name: str
    reason: str = ""
    absolute: bool = False


class Interval(Struct, frozen=True):
    """A stretch of time of one window or one freeze, [start, end), UTC. `end` is None if it has none.

    `said` names the events of a calendar, empty without names.
    """

    start: datetime
    end: datetime | None
    rule: Window | NotAllowed
    said: str = ""


class _Timeline:
    """The runs of one rule, expanded as far as needed, and cached."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self._lock = Lock()  # threads of the drainer use it too
        self._from = self._until = BEGINNING
        self._runs: list[Run] = []
        self._more: Iterator[Run] = iter(())

    def runs(self, since: datetime) -> Iterator[Run]:
        """Yield the runs that end after `since`, ascending."""
        with self._lock:
            if not self._from <= since < self._until:
                # Start a little earlier, because the next question is about the time before this moment.
                self._from = since - _LOOK_BACK
                self._until = self._from + KEPT
                self._runs, self._more = [], self._times.runs(self._from)
            runs, more = self._runs, self._more
            index = bisect.bisect_right(runs, since, key=lambda run: run.end)
        while True:
            with self._lock:
                if index == len(runs):
                    run = next(more, None)
                    if run is None:
                        return
                    runs.append(run)
                run = runs[index]
            index += 1
            if since < run.end:
                yield run

    def at(self, now: datetime) -> Run | None:
        """Return the run that contains `now`, else the next one, else None."""
        return next(self.runs(now), None)


class _State(Struct, frozen=True):
    """The first open window and the freezes that apply, as indexes into the settings."""

    window: int | None
    freezes: tuple[int, ...]


class Calendar:
    """Answers whether drains may start on nodes with given labels. Thread-safe; reads no clock."""

    def __init__(self, windows: Iterable[Window] = (), not_allowed: Iterable[NotAllowed] = ()) -> None:
        """Keep the rules in the order of the settings."""
        self.windows = tuple(windows)
        self.not_allowed = tuple(not_allowed)
        selectors = [*(each.selector for each in self.windows), *(each.selector for each in self.not_allowed)]
        self._by_labels = not all(selector.selects_all for selector in selectors)
        self._window_lines = tuple(_Timeline(window.times) for window in self.windows)
        self._freeze_lines = tuple(_Timeline(freeze.times) for freeze in self.not_allowed)
        self._answers: tuple[datetime, dict[object, Openness]] = (BEGINNING, {})
        self._outlooks: tuple[datetime, dict[object, Outlook]] = (BEGINNING, {})

    def at(self, now: datetime, labels: Mapping[str, str] | None) -> Openness:
        """Return whether a drain may start `now` on a node with these labels.

        With `labels=None` the answer is for all nodes: open if at least one window is open.
        """
        now = now.astimezone(UTC)
        kept, answers = self._answers
        if kept != now:
            answers = {}
            self._answers = now, answers
        if labels is None:
            return self._at_any(now)
        chosen = self._chosen(labels)
        answer = answers.get(chosen)
        if answer is None:
            answer = answers[chosen] = self._answer(now, *chosen)
        return answer

    def outlook(self, now: datetime, labels: Mapping[str, str]) -> Outlook:
        """Return what lies ahead for a node with these labels; nodes with the same rules share it."""
        now = now.astimezone(UTC)
        moment, outlooks = self._outlooks
        if moment != now:
            outlooks = {}
            self._outlooks = now, outlooks
        chosen = self._chosen(labels)
        found = outlooks.get(chosen)
        if found is None:
            openings = self._openings(now, now + HORIZON, *chosen)
            unfrozen = partial(self._absolute_until, freezes=chosen[1])
            found = outlooks[chosen] = Outlook(now, openings, unfrozen)
        return found

    def openings(
        self,
        now: datetime,
        labels: Mapping[str, str] | None,
        *,
        count: int | None = 3,
        until: datetime | None = None,
    ) -> tuple[Opening, ...]:
        """Return the next openings by start, beginning with the current one.

        There are at most `count` (None: any number), and they start before `until` (at most 400 days ahead).
        The current one has its real start, or `now` if that is more than nine days ago. With `labels=None`,
        each selector has its own openings.
        """
        now = now.astimezone(UTC)
        last = min(until or FOREVER, now + HORIZON)
        if labels is not None:
            return tuple(islice(self._openings(now, last, *self._chosen(labels)), count))
        groups = (
            self._openings(now, last, windows, freezes, selector)
            for selector, windows, freezes in self._groups()
        )
        found = [opening for group in groups for opening in islice(group, count)]
        return tuple(sorted(found, key=lambda opening: (opening.start, opening.window))[:count])

    def closures(self, now: datetime, labels: Mapping[str, str], until: datetime) -> tuple[Closure, ...]:
        """Return when freezes apply to such a node, by start.

        They end after `now` and start before `until`. One that began more than nine days ago may have `now`
        as its start.
        """
        freezes = zip(self.not_allowed, self._freeze_lines, strict=True)
        return tuple(
            Closure(
                each.start, each.end, each.rule.name, _why(each.rule.reason, each.said), each.rule.absolute
            )
            for each in _intervals(freezes, now, labels, until)
            if isinstance(each.rule, NotAllowed)
        )

    def intervals(
        self, now: datetime, labels: Mapping[str, str] | None, until: datetime
    ) -> tuple[Interval, ...]:
        """Return when each window and freeze of such a node applies, by start; `labels=None`: of all nodes.

        They end after `now` and start before `until`. One that began more than nine days ago may have `now`
        as its start. What is open follows from `openings`: a freeze takes its time out of the windows.
        """
        windows = zip(self.windows, self._window_lines, strict=True)
        freezes = zip(self.not_allowed, self._freeze_lines, strict=True)
        return _intervals((*windows, *freezes), now, labels, until)

    def selected_by(self, labels: Mapping[str, str]) -> Hashable:
        """Return which rules select a node with these labels: equal for nodes with the same calendar."""
        return self._chosen(labels)

    def absolute_until(self, moment: datetime, labels: Mapping[str, str]) -> datetime | None:
        """Return the first moment from `moment` on at which no absolute freeze applies to such a node (UTC).

        None means that one always applies within 400 days.
        """
        return self._absolute_until(moment, self._chosen(labels)[1])

    def _absolute_until(self, moment: datetime, freezes: tuple[int, ...]) -> datetime | None:
        start = moment = moment.astimezone(UTC)
        lines = [self._freeze_lines[i] for i in freezes if self.not_allowed[i].absolute]
        if not lines:
            return moment
        while moment < start + HORIZON:
            runs = (line.at(moment) for line in lines)
            ends = [run.end for run in runs if run is not None and run.holds(moment)]
            if not ends:
                return moment
            moment = max(ends)
        return None

    def _chosen(self, labels: Mapping[str, str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if not self._by_labels:
            return tuple(range(len(self.windows))), tuple(range(len(self.not_allowed)))
        windows = tuple(i for i, window in enumerate(self.windows) if window.selector.matches(labels))
        freezes = tuple(i for i, freeze in enumerate(self.not_allowed) if freeze.selector.matches(labels))
        return windows, freezes

    def _groups(self) -> list[tuple[LabelSelector, tuple[int, ...], tuple[int, ...]]]:
        """Return each selector of the windows, with its windows and the freezes that surely apply to it."""
        selectors = list(dict.fromkeys(window.selector for window in self.windows)) or [EVERYTHING]
        return [
            (
                selector,
                tuple(i for i, window in enumerate(self.windows) if window.selector == selector),
                tuple(
                    i
                    for i, freeze in enumerate(self.not_allowed)
                    if freeze.selector.selects_all or freeze.selector == selector
                ),
            )
            for selector in selectors
        ]

    def _openings(
        self,
        now: datetime,
        last: datetime,
        windows: tuple[int, ...],
        freezes: tuple[int, ...],
        selector: LabelSelector = EVERYTHING,
    ) -> Iterator[Opening]:
        # Look back, to find where the current opening started.
        since = now - _LOOK_BACK
        if windows:
            spans = union(
                (self._spans(self._window_lines[i], self.windows[i].name, since) for i in windows), last
            )
        else:
            spans = iter([Span(Run(BEGINNING, FOREVER), (ANY_TIME,))])
        taken = union((self._spans(self._freeze_lines[i], "", since) for i in freezes), last)
        for span in subtract(_before(spans, last), _before(taken, last)):
            if span.run.end <= now:
                continue
            if last <= span.run.start:
                return
            start = now if span.run.start == BEGINNING else span.run.start
            end = None if span.run.end == FOREVER else span.run.end
            yield Opening(start, end, ", ".join(span.names), selector)

    @staticmethod
    def _spans(line: _Timeline, name: str, since: datetime) -> Iterator[Span]:
        return (Span(run, (name,)) for run in line.runs(since))

    def _state(self, now: datetime, windows: tuple[int, ...], freezes: tuple[int, ...]) -> _State:
        def in_force(line: _Timeline) -> bool:
            run = line.at(now)
            return run is not None and run.holds(now)

        window = next((i for i in windows if in_force(self._window_lines[i])), None)
        return _State(window, tuple(i for i in freezes if in_force(self._freeze_lines[i])))

    def _facts(self, state: _State, windows: tuple[int, ...]) -> tuple[bool, str | None, str | None, bool]:
        """Return open, window, not_allowed and absolute, as in `Openness`."""
        window = None if state.window is None else self.windows[state.window].name
        freeze = self.not_allowed[state.freezes[0]].name if state.freezes else None
        absolute = any(self.not_allowed[i].absolute for i in state.freezes)
        is_open = not state.freezes and (not windows or window is not None)
        return is_open, window if is_open else None, freeze, absolute

    def _answer(self, now: datetime, windows: tuple[int, ...], freezes: tuple[int, ...]) -> Openness:
        state = self._state(now, windows, freezes)
        facts = self._facts(state, windows)
        is_open, window, freeze, absolute = facts
        changes_at = self._changes_at(now, facts, windows, freezes)
        because = self._because(now, state, windows, freezes)
        return Openness(is_open, because, window, freeze, absolute, changes_at)

    def _changes_at(
        self, now: datetime, facts: object, windows: tuple[int, ...], freezes: tuple[int, ...]
    ) -> datetime | None:
        moment = now
        while moment < now + HORIZON:
            state = self._state(moment, windows, freezes)
            if self._facts(state, windows) != facts:
                return moment
            # While a freeze applies, windows do not matter. While a window is open, later ones do not.
            lines = [self._freeze_lines[i] for i in freezes]
            if not state.freezes:
                lines += [self._window_lines[i] for i in windows if state.window is None or i <= state.window]
            runs = [run for line in lines if (run := line.at(moment)) is not None]
            edges = [edge for run in runs for edge in (run.start, run.end) if moment < edge]
            moment = min(edges, default=FOREVER)
        return None

    def _because(
        self, now: datetime, state: _State, windows: tuple[int, ...], freezes: tuple[int, ...]
    ) -> str:
        if state.freezes:
            parts = []
            for index in state.freezes:
                freeze, run = self.not_allowed[index], self._freeze_lines[index].at(now)
                why = _why(freeze.reason, _said_at(freeze.times, now))
                text = freeze.name + (f" ({why})" if why else "")
                if run is not None and run.end != FOREVER:
                    text += f" until {to_text(run.end)}"
                parts.append(text + (", even at a deadline" if freeze.absolute else ""))
            return f"not allowed: {'; '.join(parts)}"
        opening = next(self._openings(now, now + HORIZON, windows, freezes), None)
        if state.window is not None or not windows:
            if state.window is not None:
                window = self.windows[state.window]
                said = _said_at(window.times, now)
                text = f"window {window.name}{f' ({said})' if said else ''} is open"
            else:
                text = "there are no windows" if not self.windows else "no window selects the node"
                text += ", so a drain may start at any time"
            end = opening.end if opening is not None else None
            return f"{text} until {to_text(end)}" if end else text
        unread = "".join(
            f"; the windows of {self.windows[i].name} are not known, because it can't be read: "
            f"{self.windows[i].unread}"
            for i in windows
            if self.windows[i].unread
        )
        if opening is None:
            return f"no maintenance window is open, and none opens within {HORIZON.days} days{unread}"
        start = to_text(opening.start)
        return f"no maintenance window is open; {opening.window} opens next, at {start}{unread}"

    def _at_any(self, now: datetime) -> Openness:
        answers = []
        groups = self._groups()
        for selector, windows, freezes in groups:
            answer = self._answer(now, windows, freezes)
            nodes = "all nodes" if selector.selects_all else f"nodes {selector}"
            alone = selector.selects_all and len(groups) == 1
            answers.append((answer, answer.because if alone else f"{nodes}: {answer.because}"))
        opened = next((answer for answer, _ in answers if answer.open), answers[0][0])
        parts = [words for _, words in answers]
        if self.windows and not any(window.selector.selects_all for window in self.windows):
            parts.append("nodes without a window: a drain may start at any time")
        for freeze, line in zip(self.not_allowed, self._freeze_lines, strict=True):
            run = line.at(now)
            if run is not None and run.holds(now) and not freeze.selector.selects_all:
                parts.append(f"nodes {freeze.selector}: not allowed ({freeze.name})")
        changes = [answer.changes_at for answer, _ in answers if answer.changes_at is not None]
        return Openness(
            opened.open,
            "; ".join(parts),
            opened.window,
            opened.not_allowed,
            opened.absolute,
            min(changes, default=None),
        )


def _intervals(
    rules: Iterable[tuple[Window | NotAllowed, _Timeline]],
    now: datetime,
    labels: Mapping[str, str] | None,
    until: datetime,
) -> tuple[Interval, ...]:
    now, until = now.astimezone(UTC), until.astimezone(UTC)
    found = []
    for rule, line in rules:
        if labels is None or rule.selector.matches(labels):
            runs = list(takewhile(lambda run: run.start < until, line.runs(now)))
            for run, said in zip(runs, _said(rule.times, runs, now), strict=True):
                start = now if run.start == BEGINNING else run.start
                found.append(Interval(start, None if run.end == FOREVER else run.end, rule, said))
    return tuple(sorted(found, key=lambda interval: interval.start))


def _why(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _said_at(times: Times, now: datetime) -> str:
    """Return the names of what applies at `now`, empty without names."""
    return _said(times, [Run(now, now + timedelta(seconds=1))], now)[0]


def _said(times: Times, runs: list[Run], now: datetime) -> list[str]:
    """Return for each of these runs, ascending, the names of what it consists of; they are near `now`."""
    found: list[dict[str, None]] = [{} for _ in runs]
    if runs and isinstance(times, Named):
        starts = [run.start for run in runs]
        edge, last = max(starts[0], now - HORIZON), min(runs[-1].end, now + HORIZON)
        for run, name in times.named(edge, last):
            found[max(0, bisect.bisect_right(starts, run.start) - 1)][name] = None
    return [_listed(list(names)) for names in found]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return ", ".join(names[:_NAMED_AT_MOST]) + more


def _before(spans: Iterable[Span], last: datetime) -> Iterator[Span]:
    """Yield the spans that start before `last`. Without it, endless rules may cancel each other forever."""
    for span in spans:
        if last <= span.run.start:
            return
        yield span


__all__ = [
    "ANY_TIME",
    "Always",
    "Calendar",
    "Closure",
    "Interval",
    "NotAllowed",
    "Opening",
    "Openness",
    "Window",
]
