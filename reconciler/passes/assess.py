"""Assess: join what the sources say about each node into maintenance events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from msgspec import Struct, field

from reconciler.calendar.values import format_duration
from reconciler.model import limits
from reconciler.model.clocks import own_times
from reconciler.model.event import (
    REQUEST,
    Answer,
    Cause,
    Initiator,
    Kind,
    MaintenanceEvent,
    Reading,
    Signal,
    Status,
)
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.model.problems import internal
from reconciler.model.record import SAME_MOMENT
from reconciler.model.snapshot import Assessment, NodeAssessment, Snapshot


def assess(snapshot: Snapshot, now: datetime) -> Assessment:
    """Return the events of every node, from the readings of all sources.

    A reading whose heartbeat is too old becomes unknown, because its writer may no longer run. So does one
    that reports no event, with a heartbeat that is far in the future: nobody knows how old it is.
    """
    latest = own_times(now, snapshot.disagreement).latest
    nodes: dict[str, NodeAssessment] = {}
    absent: Counter[str] = Counter()
    for node in snapshot.nodes:
        try:
            readings = snapshot.readings.get(node.name, ())
            judged = _limited(tuple(_judge_age(reading, now, latest) for reading in readings))
            signals = [signal for reading in judged for signal in reading.signals]
            assessed = NodeAssessment(join(node.name, signals) if signals else (), judged)
        except Exception as error:  # noqa: BLE001 - one node's data harms that node only
            assessed = NodeAssessment(problem=internal(f"node {node.name} can't be assessed", error))
        nodes[node.name] = assessed
        absent.update(absences(assessed))
    return Assessment(nodes, absent)


def absences(assessed: NodeAssessment) -> Iterator[str]:
    """Yield what is not installed on a node, or updates its answer no more, and why."""
    for reading in assessed.readings:
        if reading.abandoned or not reading.installed:
            yield f"{reading.source}: {reading.abandoned or reading.because}"


def _limited(readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Return the readings with at most 100 events in all; the longest ones become unknown, as a whole."""
    if sum(len(reading.signals) for reading in readings) <= limits.EVENTS:
        return readings
    left = limits.EVENTS
    kept: set[int] = set()
    for position in sorted(range(len(readings)), key=lambda position: len(readings[position].signals)):
        left -= len(readings[position].signals)
        if left >= 0:
            kept.add(position)
    because = f"the node has more than {limits.EVENTS} events"
    return tuple(
        one
        if position in kept
        else replace(
            one, answer=Answer.UNKNOWN, signals=(), because=f"{because}, {len(one.signals)} from here"
        )
        for position, one in enumerate(readings)
    )


def _judge_age(reading: Reading, now: datetime, latest: datetime) -> Reading:
    """Return the reading, as unknown if its heartbeat is too old, or too far after the `latest` moment."""
    written, stale_after, until = reading.as_of, reading.stale_after, reading.believed_until
    if reading.answer is Answer.UNKNOWN or written is None or stale_after is None or until is None:
        return reading
    if now > until:
        age = f"{_minutes(now - written)} old"
    elif reading.answer is Answer.NO_EVENT and written - stale_after > latest:
        # It would be valid for longer than any other. An event is acted on, whatever the clock.
        age = f"{_minutes(written - now)} in the future: check the clock of the node"
    else:
        return reading
    return replace(reading, answer=Answer.UNKNOWN, signals=(), because=f"its last heartbeat is {age}")


def _minutes(age: timedelta) -> str:
    return count_of(int(age.total_seconds() // 60), "minute")


def join(node: str, signals: Iterable[Signal]) -> tuple[MaintenanceEvent, ...]:
    """Join one node's signals into events, ids first, then kind and not_before.

    Two signals of one source with different ids stay two events: that source distinguishes them itself.
    """
    in_order = sorted(signals, key=signal_order)
    if len(in_order) == 1:
        return (_merge(node, in_order),)
    groups = SignalGroups(in_order)
    for signal in in_order:
        groups.add(signal)
    return tuple(sorted((_merge(node, group) for group in groups.groups), key=_event_order))


class _SameKind(Struct):
    """The groups that have a signal of one kind: the `order` of their numbers, and the `latest` date of each.

    `passed` is, for one sort of signal, how many groups of `order` no such signal can join any more.
    """

    order: list[int] = field(default_factory=list)
    latest: dict[int, datetime | None] = field(default_factory=dict)
    passed: dict[tuple[str, bool, bool], int] = field(default_factory=dict)


class SignalGroups:
    """Joins signals that come in the order of `signal_order`; the work is linear in their number.

    `expected` are all signals that will come: a source keeps its own ids apart, also one that comes later.
    """

    def __init__(self, expected: Iterable[Signal] = ()) -> None:
        """Start without a group."""
        self.groups: list[list[Signal]] = []
        self._reported: dict[str, set[str]] = {}
        for signal in expected:
            if signal.id:
                self._reported.setdefault(signal.source, set()).add(signal.id.casefold())
        self._ids: list[set[str]] = []
        self._by_id: dict[str, int] = {}
        self._kinds: dict[str, _SameKind] = {}
        # By group: its sources, each with whether a signal of it has an id.
        self._sources: list[dict[str, bool]] = []

    def add(self, signal: Signal) -> None:
        """Add a signal to the group that it is about, or to a new one."""
        kind = self._kinds.setdefault(_kind_of(signal), _SameKind())
        number = self._by_id.get(signal.id.casefold()) if signal.id else None
        by_id = number is not None
        if number is None:
            # The first group of this kind and date in which the signal's source has no other id.
            sort = (signal.source, bool(signal.id), signal.not_before is not None)
            position = kind.passed.get(sort, 0)
            while position < len(kind.order) and not self._may_join(signal, kind, kind.order[position]):
                position += 1
            # Dates only grow, and sources only join: what is passed once can't be joined by a later signal.
            kind.passed[sort] = position
            number = kind.order[position] if position < len(kind.order) else None
        if number is None:
            number = len(self.groups)
            self.groups.append([])
            self._sources.append({})
            self._ids.append(set())
        if number not in kind.latest or (by_id and signal.not_before != kind.latest[number]):
            # Also a group that was passed because its date was too early: now it has a later one.
            kind.order.append(number)
        kind.latest[number] = signal.not_before
        if signal.id:
            self._by_id.setdefault(signal.id.casefold(), number)
            self._ids[number].add(signal.id.casefold())
        sources = self._sources[number]
        sources[signal.source] = sources.get(signal.source, False) or bool(signal.id)
        self.groups[number].append(signal)

    def _may_join(self, signal: Signal, kind: _SameKind, number: int) -> bool:
        with_id = self._sources[number].get(signal.source)
        if with_id is not None and (signal.id or with_id):
            return False
        if not self._ids[number].isdisjoint(self._reported.get(signal.source, ())):
            # The same source reports this event under another id.
            return False
        latest = kind.latest[number]
        if signal.condition or signal.not_before is None or latest is None:
            return True
        return signal.not_before - latest <= SAME_MOMENT


def _kind_of(signal: Signal) -> str:
    """Return what two signals without a common id must agree in to be one event; a pause is a pause."""
    if signal.condition:
        return f"condition {signal.condition}"
    return "pause" if signal.kind.is_pause else signal.kind.value


def signal_order(signal: Signal) -> tuple[bool, str, str, str, str]:
    """Return the sort key by which signals come to `SignalGroups`."""
    # Dated signals come first, so that one without a date finds the dated event that it is about.
    dated = to_text(signal.not_before) if signal.not_before else ""
    return (not dated, dated, signal.source, signal.id, signal.kind.value)


def _event_order(event: MaintenanceEvent) -> tuple[bool, str, str, tuple[str, ...]]:
    dated = to_text(event.not_before) if event.not_before else ""
    return (not dated, dated, event.kind.value, event.ids)


def _merge(node: str, group: list[Signal]) -> MaintenanceEvent:
    # Where two sources name one event differently, the worse kind wins.
    kind = max((signal.kind for signal in group), key=lambda kind: kind.severity)
    started = any(signal.status is Status.STARTED for signal in group)
    dates = [signal.not_before for signal in group if signal.not_before is not None]
    durations = [signal.duration for signal in group if signal.duration is not None]
    initiators = {signal.initiator for signal in group if signal.initiator is not None}
    disagreements = (
        ()
        if len(group) == 1
        else tuple(
            text
            for text in (
                _differ("kind", {s.source: s.kind.value for s in group}, pauses_agree=True),
                _differ("status", {s.source: s.status.value for s in group}),
                _differ("not before", {s.source: to_text(s.not_before) for s in group if s.not_before})
                if dates and max(dates) - min(dates) > SAME_MOMENT
                else "",
                _differ(
                    "duration",
                    {s.source: format_duration(s.duration) for s in group if s.duration is not None},
                ),
                _differ("initiator", {s.source: s.initiator.value for s in group if s.initiator}),
            )
            if text
        )
    )
    return MaintenanceEvent(
        node=node,
        kind=kind,
        status=Status.STARTED if started else Status.SCHEDULED,
        # The earliest date and the longest pause: where sources differ, the careful answer applies.
        not_before=min(dates, default=None),
        duration=max(durations, default=None),
        ids=tuple(sorted({signal.id for signal in group if signal.id})),
        sources=tuple(sorted({signal.source for signal in group})),
        cause=Cause(
            Initiator.PLATFORM if Initiator.PLATFORM in initiators else next(iter(initiators), None),
            max((signal.description for signal in group), key=lambda text: (len(text), text)),
            any(signal.degraded for signal in group),
        ),
        # A date is known if one source could read it.
        date_unreadable=not dates and any(signal.date_unreadable for signal in group),
        condition=group[0].condition,
        since=group[0].since,
        disagreements=disagreements,
        # Once any source reports it without a plan, the event is imminent and no longer a plan.
        plan=group[0].plan if all(signal.plan for signal in group) else None,
        at_once=any(
            signal.source == REQUEST and signal.not_before is None and not signal.date_unreadable
            for signal in group
        ),
        replaces=any(signal.replaces for signal in group),
        reports_start=any(signal.reports_start for signal in group),
    )


def _differ(what: str, words: Mapping[str, str], *, pauses_agree: bool = False) -> str:
    distinct = set(words.values())
    if pauses_agree and distinct == {Kind.FREEZE.value, Kind.LIVE_MIGRATION.value}:
        return ""
    if len(distinct) < 2:
        return ""
    return f"{what}: " + ", ".join(f"{source} says {word}" for source, word in sorted(words.items()))
