"""The sum of what was observed, in a sentence, as a table and as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.features.observed.cases import Fate, Kept, ObservedCase, Stretch, seen_until, to_fields
from reconciler.model.limits import count_of, first_of
from reconciler.model.moments import to_text
from reconciler.model.panels import Panel, Step
from reconciler.model.values import replace
from reconciler.report.rows import Table, minute
from reconciler.report.text import shown
from reconciler.report.values import Document, head, keys, plain

_NAMED = 3
"""Reasons, or budgets, that the sentence names."""

TITLE = "What would have been done, had the mode been Enforce"
"""The heading on a page."""

WAY = "The way to Enforce"
"""The heading of the steps."""

_ON_PAGE = 50
"""Cases that a page shows."""

_ROWS = 100
"""Rows of a text; the other outputs have all of them."""


keys(Step, "title done because todo comment")


class Sum(Struct, frozen=True):
    """What was observed until a moment. `source` says where it was read.

    `lasted` is for how long the mode was Observe, None if that is not known, and `observes` whether it is.
    `whole_from` is from when on nothing is missing (UTC; None: not known). `cases` are sorted by the moment
    at which they were announced. `steps` lead to the mode Enforce.
    """

    at: datetime
    source: str
    cases: tuple[ObservedCase, ...]
    lasted: timedelta | None = None
    observes: bool = False
    whole_from: datetime | None = None
    steps: tuple[Step, ...] = ()

    @property
    def fates(self) -> Counter[Fate]:
        """How many cases have which fate."""
        return Counter(case.fate for case in self.cases)

    @property
    def sentence(self) -> str:
        """The sum in words."""
        time = f"In {_long(self.lasted)} " if self.lasted is not None else ""
        if not self.cases:
            said = "no maintenance was announced, so nothing would have been done"
            return f"{time}{said}" if time else f"{said[0].upper()}{said[1:]}"
        nodes = len({case.node for case in self.cases})
        what = count_of(len(self.cases), "node")
        if nodes != len(self.cases):
            what = f"{count_of(len(self.cases), 'maintenance')} of {count_of(nodes, 'node')}"
        fates = self.fates
        parts = [f"{fates[Fate.IN_TIME]} would have been drained in time"]
        late = [case.late for case in self.cases if case.fate is Fate.MISSED]
        parts += [f"{len(late)} missed ({_most(late)})"] if late else []
        stays = [name for case in self.cases if case.fate is Fate.BLOCKED for name in case.stays]
        parts += [f"{fates[Fate.BLOCKED]} blocked by {_most(stays)}"] if fates[Fate.BLOCKED] else []
        parts += [f"{fates[Fate.NOT_KNOWN]} not known"] if fates[Fate.NOT_KNOWN] else []
        parts += [f"{fates[Fate.CALLED_OFF]} called off"] if fates[Fate.CALLED_OFF] else []
        parts += [f"{fates[Fate.AHEAD]} still ahead"] if fates[Fate.AHEAD] else []
        verb = "was" if len(self.cases) == 1 else "were"
        return f"{time}{what} {verb} announced; {', '.join(parts)}"

    @property
    def met(self) -> str:
        """What the platform met, in words; empty if it has started nothing."""
        struck = [case for case in self.cases if case.struck is not None]
        if not struck:
            return ""
        known = [case.pods for case in struck if case.pods is not None]
        unknown = f", and on {count_of(len(struck) - len(known), 'node')} that is not known"
        times = count_of(len(struck), "node")
        met = f"The platform began on {times}, with {count_of(sum(known), 'pod')} on"
        return f"{met} {'it' if len(struck) == 1 else 'them'}{unknown if len(known) < len(struck) else ''}"

    @property
    def document(self) -> Document:
        """The sum as plain values."""
        return {
            **head(self.at),
            **plain({"wholeFrom": self.whole_from, "source": self.source}),
            "observes": self.observes,
            "observedSeconds": self.lasted.total_seconds() if self.lasted is not None else None,
            "summary": self.sentence,
            "fates": {fate.value: self.fates[fate] for fate in Fate},
            "cases": [to_fields(case) for case in self.cases],
            "steps": plain(self.steps),
        }


def chosen(lines: Iterable[Kept], since: datetime | None, node: str | None) -> Iterator[Kept]:
    """Yield what was announced `since` a moment (aware; None: all), and of this node (None: of each)."""
    for line in lines:
        if isinstance(line, Stretch):
            begin = line.since if since is None else max(line.since, since)
            if line.until is None or line.until > begin:
                yield replace(line, since=begin)
        elif (since is None or line.announced >= since) and node in (None, line.node):
            yield line


def summed_up(
    lines: Iterable[Kept],
    at: datetime,
    source: str,
    *,
    observes: bool = False,
    whole_from: datetime | None = None,
) -> Sum:
    """Return the sum of lines at a moment. `observes`: the mode is Observe now.

    What goes on in another mode was not ended by the process that observed: only what lines tell is known.
    """
    lines, times, cases = tuple(lines), [], []
    last = at if observes else seen_until(lines, at)
    for line in lines:
        if isinstance(line, ObservedCase):
            cases.append(line)
            continue
        begin = line.since if whole_from is None else max(line.since, whole_from)
        times.append((begin, max(line.until or last, begin)))
    cases.sort(key=lambda case: (case.announced, case.node))
    return Sum(at, source, tuple(cases), _union(times) or None, observes, whole_from)


def _union(times: Iterable[tuple[datetime, datetime]]) -> timedelta:
    """Return how long the times last together: replicas observe at the same time."""
    lasted, end = timedelta(), None
    for begin, until in sorted(times):
        begins = begin if end is None else max(begin, end)
        lasted += max(until - begins, timedelta())
        end = until if end is None else max(end, until)
    return lasted


def _long(length: timedelta) -> str:
    hours = int(length / timedelta(hours=1))
    if hours < 1:
        return count_of(max(int(length / timedelta(minutes=1)), 1), "minute")
    return count_of(hours, "hour") if hours < 48 else count_of(length.days, "day")


def _most(names: Iterable[str]) -> str:
    return first_of([name for name, _ in Counter(names).most_common()], _NAMED)


CASES: Table[ObservedCase] = Table(
    (
        ("announced (UTC)", lambda case: minute(case.announced)),
        ("node", lambda case: case.node),
        ("would be", lambda case: case.fate.value),
        ("kind", lambda case: case.kind),
        ("pool", lambda case: case.pool),
        ("drain from", lambda case: minute(case.begins)),
        ("platform from", lambda case: minute(case.struck or case.date)),
        ("pods", lambda case: str(case.pods) if case.pods is not None else ""),
    ),
    3,
    lambda case: case.why,
    to_fields,
)

_KEYS = (
    *("announced", "node", "fate", "kind", "pool", "date", "begins", "begun", "late", "because", "stays"),
    *("pods", "struck", "over", "sources", "uid", "key"),
)


def as_csv(total: Sum) -> str:
    """Return the cases as CSV."""
    return CASES.csv(total.cases, _KEYS)


def as_text(total: Sum, zone: ZoneInfo, width: int | None = None) -> str:
    """Return the sum as text, the cases with the latest last; `width` None folds no line."""
    lines = [f"{total.sentence}."]
    lines += [f"{total.met}."] if total.met else []
    if total.whole_from is not None and total.cases and total.cases[0].announced < total.whole_from:
        lines.append(f"{total.source} is complete from {to_text(total.whole_from)} on")
    rows: Sequence[ObservedCase] = total.cases[-_ROWS:]
    if rows:
        lines += ["", *CASES.lines(rows, width)]
    hidden = len(total.cases) - len(rows)
    if hidden:
        lines.append(f"and {hidden:,} before; --output json has all {len(total.cases):,}")
    if total.steps:
        lines += ["", f"{WAY}:", *_steps(total.steps)]
    return shown(lines, zone, width)


def panel(total: Sum) -> Panel:
    """Return what a page shows of it: the newest cases first."""
    rows = total.cases[::-1][:_ON_PAGE]
    hidden = len(total.cases) - len(rows)
    return Panel(
        TITLE,
        f"{total.sentence}.",
        f"{total.met}." if total.met else "",
        WAY,
        total.steps,
        f"Each case: {len(total.cases)}",
        ("Announced", "Node", "Outcome", "Would have been", "The platform", "Why"),
        tuple(
            (to_text(case.announced), case.node, case.fate.value, case.would, case.happened, case.why)
            for case in rows
        ),
        f"and {count_of(hidden, 'older one')}: reconciler history --observed" if hidden else "",
    )


_MARKS = {True: "[x]", False: "[ ]", None: "[?]"}


def _steps(steps: Iterable[Step]) -> Iterable[str]:
    for step in steps:
        yield f"{_MARKS[step.done]} {step.title}: {step.because}"
        if step.todo:
            yield f"    {step.comment}:" if step.comment else "    next:"
            yield from (f"      {line}" for line in step.todo)
