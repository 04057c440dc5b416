"""The timeline of the page, and its scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.outlook import ANY_TIME
from reconciler.calendar.values import rounded
from reconciler.features.page.facts import AHEAD, BACK, PageFacts
from reconciler.model.case_outcome import CaseResult
from reconciler.model.plan import NodePlan
from reconciler.report.ahead import PlannedCase, Status, day_text, moment_text, round_times

ZOOM = timedelta(minutes=15), timedelta(hours=3), timedelta(minutes=30), timedelta(minutes=12)
"""How far the next hours look back and ahead, the time between two ticks, and the room for `now`."""


class Tick(Struct, frozen=True):
    """A round time of day; `day` is whether a day begins with it."""

    at: float
    label: str
    day: bool


class Scale(Struct, frozen=True):
    """The time around `now` (UTC), which people read in `zone`.

    `every` is the time between two ticks, and `room` how far the label of a tick is from that of `now`.
    """

    now: datetime
    zone: ZoneInfo
    back: timedelta = BACK
    ahead: timedelta = AHEAD
    every: timedelta = timedelta(hours=6)
    room: timedelta = timedelta(hours=3)

    @property
    def start(self) -> datetime:
        """The left end."""
        return self.now - self.back

    @property
    def end(self) -> datetime:
        """The right end."""
        return self.now + self.ahead

    @property
    def zoomed(self) -> bool:
        """Whether it shows only the next hours."""
        return self.ahead < AHEAD

    def holds(self, moment: datetime) -> bool:
        """Whether the timeline shows that moment."""
        return self.start <= moment <= self.end

    def at(self, moment: datetime) -> float:
        """Return the place of a moment in percent; what is outside is at the end."""
        part = (min(max(moment, self.start), self.end) - self.start) / (self.back + self.ahead)
        return round(part * 100, 2)

    def ticks(self) -> Iterator[Tick]:
        """Yield the round times of day, in order. One beside `now` has no label."""
        for local in round_times(self.start, self.end, self.every, self.zone):
            if local > self.start:
                label = f"{local:%H:%M}" if local.hour else day_text(local, far=False)
                beside = abs(local - self.now) < self.room
                yield Tick(self.at(local), "" if beside else label, not local.hour)


MOST_ROWS = 200
"""Nodes on the timeline, the most urgent ones."""

MOST_SOON = 60
"""Nodes in the next hours, the most urgent ones."""

_MOST_SPANS = 60
"""Windows, and freezes, of one calendar."""


class Bar(Struct, frozen=True):
    """A stretch of time in percent; `kind` is drain, out, plan, span, window or freeze."""

    kind: str
    start: float
    width: float


class Mark(Struct, frozen=True):
    """A moment in percent; `kind` is start, latest, platform, back, miss or unknown."""

    kind: str
    at: float


class Row(Struct, frozen=True):
    """One node. `words` says everything that is drawn; `shade` is the number of its calendar.

    `soon` is what happens next, and in how much time; empty if nothing is known to happen. `past` says that a
    case before was missed, and how long ago.
    """

    node: str
    words: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    shade: int
    missed: bool = False
    soon: str = ""
    past: str = ""


class Chart(Struct, frozen=True):
    """The rows by pool, the shades of the calendars, and how many nodes are left out."""

    pools: tuple[tuple[str, tuple[Row, ...]], ...]
    shades: tuple[tuple[Bar, ...], ...]
    left_out: int = 0


class Drawing(Struct):
    """What is drawn of one node, on no scale yet, while it is found. Moments are in UTC."""

    node: str
    pool: str
    now: datetime
    zone: ZoneInfo
    bars: list[tuple[str, datetime, datetime]] = []
    marks: list[tuple[str, datetime]] = []
    words: list[str] = []
    missed: bool = False
    past: str = ""
    ahead: list[tuple[datetime, str]] = []

    def bar(self, kind: str, start: datetime | None, end: datetime | None) -> None:
        """Draw a stretch of time, without words; nothing if an end is not known."""
        if start is not None and end is not None and start <= end:
            self.bars.append((kind, start, end))

    def mark(self, kind: str, moment: datetime | None, words: str) -> None:
        """Draw a moment, and say what it is."""
        if moment is None:
            return
        self.say(words, moment)
        self.marks.append((kind, moment))
        if moment >= self.now and kind != "miss":
            self.ahead.append((moment, words))

    def say(self, words: str, moment: datetime | None = None) -> None:
        """Add words about what is drawn, with the moment if one is given."""
        at = f" {moment_text(moment, self.now, self.zone)}" if moment is not None else ""
        self.words.append(f"{words}{at}")

    def is_on(self, scale: Scale) -> bool:
        """Whether the scale shows anything of it; on that of the next hours, only what begins or ends."""
        bars = [(start, end) for _, start, end in self.bars if scale.start < end and start < scale.end]
        marks = [kind for kind, moment in self.marks if scale.holds(moment)]
        if not scale.zoomed:
            return bool(bars or marks)
        return any(kind != "unknown" for kind in marks) or any(
            scale.start < start != scale.now or scale.now != end < scale.end for start, end in bars
        )

    def row(self, scale: Scale, shade: int) -> Row:
        """Return its row on a scale."""
        bars = []
        for kind, start, end in self.bars:
            if scale.start < end and start < scale.end:
                left = scale.at(start)
                bars.append(Bar(kind, left, max(round(scale.at(end) - left, 2), 0.15)))
        marks = tuple(Mark(kind, scale.at(moment)) for kind, moment in self.marks if scale.holds(moment))
        soon = ""
        if self.ahead:
            at, what = min(self.ahead)
            soon = f"{what} in {rounded(at - self.now)}" if at > self.now else f"{what} now"
        return Row(self.node, "; ".join(self.words), tuple(bars), marks, shade, self.missed, soon, self.past)


def chart(facts: PageFacts, drawings: Iterable[Drawing], scale: Scale) -> Chart:
    """Return the timeline of a plan and of the cases that have ended, on this scale."""
    shown = [drawing for drawing in drawings if drawing.is_on(scale)]
    pools: dict[str, list[Row]] = {}
    numbers: dict[object, int] = {}
    shades: list[tuple[Bar, ...]] = []
    most = MOST_SOON if scale.zoomed else MOST_ROWS
    for drawing in shown[:most]:
        # A node that is gone has the shade of a node without labels.
        labels = facts.plan.labels.get(drawing.node, {})
        selected = facts.calendar.selected_by(labels)
        if selected not in numbers:
            numbers[selected] = len(shades)
            # A shade is the windows and freezes of nodes with these labels.
            openings = facts.calendar.openings(scale.start, labels, count=_MOST_SPANS, until=scale.end)
            closures = facts.calendar.closures(scale.start, labels, scale.end)[:_MOST_SPANS]
            spans = [("window", each.start, each.end) for each in openings if each.window != ANY_TIME]
            spans += [("freeze", closure.start, closure.end) for closure in closures]
            bars = []
            for kind, start, end in spans:
                left = scale.at(start)
                bars.append(Bar(kind, left, round(scale.at(end or scale.end) - left, 2)))
            shades.append(tuple(bars))
        pools.setdefault(drawing.pool, []).append(drawing.row(scale, numbers[selected]))
    rows = tuple((pool, tuple(pools[pool])) for pool in sorted(pools))
    return Chart(rows, tuple(shades), max(len(shown) - most, 0))


def drawings(facts: PageFacts) -> tuple[Drawing, ...]:
    """Return the nodes with a case, the most urgent first, then those whose case has ended."""
    plans = {node.node: node for node in facts.plan.nodes}
    by_node: dict[str, Drawing] = {}
    for case in (*facts.ahead.cases, *facts.ahead.later):
        by_node[case.node] = drawing = Drawing(case.node, case.pool, facts.plan.now, facts.zone)
        _draw(drawing, case, plans[case.node], facts.plan.now)
        if facts.presses(plans[case.node]):
            drawing.missed = True
            drawing.say("blocked, and can't wait")
    for ended in facts.recent():
        name = ended.place.node
        drawing = by_node.setdefault(name, Drawing(name, ended.place.pool, facts.plan.now, facts.zone))
        times = ended.times
        drawing.say(f"{ended.kind or 'maintenance'}, ended: {ended.outcome.value}")
        drawing.bar("drain", times.started, times.drained)
        drawing.bar("out", times.drained or times.started, times.uncordoned or times.ended)
        if ended.outcome is not CaseResult.CANCELLED:
            drawing.mark("platform", times.not_before, "the platform's time was")
        drawing.mark("start", times.started, "drain began")
        if not ended.outcome.good:
            drawing.past = f"{ended.outcome.value} {rounded(drawing.now - times.ended)} ago"
            drawing.mark("miss", times.not_before or times.ended, ended.outcome.value)
        if times.uncordoned is not None:
            drawing.mark("back", times.uncordoned, "back in service")
    return tuple(by_node.values())


def _draw(drawing: Drawing, case: PlannedCase, node: NodePlan, now: datetime) -> None:
    schedule, outcome = case.schedule, node.outcome
    drained = outcome.drained if outcome is not None else None
    observed = (
        ", and not started in mode Observe" if case.status is Status.PLANNED and schedule.observed else ""
    )
    drawing.say(f"{', '.join(case.kinds) or 'maintenance'}: {case.word}{observed}")
    if case.begun:
        begun = schedule.planned_start
        drawing.bar("drain", begun, drained or now)
        drawing.bar("out", drained, now)
        drawing.bar("plan", now, schedule.ends)
        drawing.mark("start", begun, "drain began")
        if drained is not None:
            drawing.say("drained", drained)
    else:
        drawing.bar("plan", schedule.planned_start, schedule.ends or schedule.planned_start)
        drawing.bar("span", schedule.plan_from, schedule.plan_until)
        drawing.mark("start", schedule.planned_start, "planned start")
        drawing.mark("latest", schedule.latest_start, "latest start")
    if case.status is Status.WAITING:
        drawing.say("its start is not known")
        drawing.marks.append(("unknown", now))
    drawing.mark("platform", case.not_before, "the platform may start")
    if schedule.ends is not None:
        drawing.say("expected back", schedule.ends)
    struck = outcome is not None and not outcome.result.good
    if schedule.missed or struck:
        drawing.missed = True
        known = schedule.latest_start or case.not_before or now
        if outcome is not None and struck:
            drawing.mark("miss", outcome.started or known, outcome.result.value)
        else:
            # What is still to come is not drawn in the past.
            drawing.mark("miss", max(known, now), "will be missed")
