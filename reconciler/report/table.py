"""The report as a table: what the fleet is in three lines, and one line a node, the most urgent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from rich.cells import cell_len

from reconciler.calendar.values import format_local, time_left, with_time_left
from reconciler.model.limits import count_of, first_of
from reconciler.model.plan import Plan
from reconciler.report import safe
from reconciler.report.ahead import clock_text
from reconciler.report.columns import NodeReport
from reconciler.report.document import Report
from reconciler.report.lines import Line, folded, padded, short_names, with_clocks, wrapped
from reconciler.report.moves import pod_lines
from reconciler.report.people import alarms, for_all, for_any, obstacles_in
from reconciler.report.standing import Standing, standing
from reconciler.report.text import QUIET, is_quiet, lines_about, nothing_written, places_line, unknown_lines
from reconciler.report.values import moment_value, outcome_lines
from reconciler.report.verdict import answers, comes_at, drain_begins, kinds_of

_HEADS = ("NODE", "STATE", "WHAT", "WHEN", "WHY")

_REASON = 40
"""The least columns for the reason beside its row; with fewer, it stands below."""

_INDENT = " " * 10

_NAME = 12
"""The least columns for a node's name."""

_NEVER = datetime.max.replace(tzinfo=UTC)


def as_table(report: Report, width: int | None = None) -> tuple[Line, ...]:
    """Return the report as a table. Without a `width` in columns nothing is folded or shortened."""
    plan = report.plan
    nodes = sorted((node for node in report.nodes if node.plan.has_news), key=_urgency)
    lines = [Line(text) for text in _head(report)]
    lines += [Line(text, alarm=True) for text in alarms(plan)]
    lines += [Line(text) for text in lines_about(report)]
    if report.pods is not None:
        lines += [Line(), *pod_lines(report.pods, plan.now)]
    shown = [*_written(lines, plan, width)]
    if nodes:
        shown += [Line(), *_rows(nodes, plan, width)]
    more = [Line(text) for text in unknown_lines([node for node in report.nodes if not node.plan.has_news])]
    if is_quiet(report):
        more += [Line(), Line(QUIET)]
    elif nodes:
        more += [Line(), *map(Line, _offers(nodes))]
        more += [Line("`reconciler explain NODE` says what blocks a node, and what to type")]
    failed = outcome_lines(report.outcomes)
    more += [Line(), *(Line(text, alarm=True) for text in failed)] if failed else []
    return (*shown, *_written(more, plan, width))


def _offers(nodes: Iterable[NodeReport]) -> Iterator[str]:
    """Yield each command that lets drains of missed nodes begin, with these nodes."""
    offered: dict[str, list[str]] = {}
    for node in nodes:
        for command in node.plan.schedule.remedies if node.plan.schedule is not None else ():
            offered.setdefault(for_any(node.name, command), []).append(node.name)
    for command, names in offered.items():
        whose = "its drain" if len(names) == 1 else f"the drain of {first_of(names)}"
        yield f"`{for_all(names, command)}` lets {whose} begin"


def _written(lines: Sequence[Line], plan: Plan, width: int | None) -> Iterator[Line]:
    """Yield the lines as people read them, folded. The first line of a report names the zone."""
    zone = ZoneInfo(plan.settings.time_zone)
    texts = with_clocks((line.text for line in lines), plan.now, zone, named=False)
    for line, text in zip(lines, texts, strict=True):
        yield from (Line(part, line.alarm) for part in folded(text, width))


def _head(report: Report) -> Iterator[str]:
    """Yield when and in which mode, how many nodes are what, and what comes next."""
    plan = report.plan
    written = nothing_written(report.by)
    # The day is said here once; all other moments of it are times of day.
    now = format_local(plan.now, ZoneInfo(plan.settings.time_zone))
    yield " · ".join(part for part in (now, f"mode {plan.mode}", written) if part)
    counted = Counter(standing(node) for node in plan.nodes if node.has_news)
    counts = ", ".join(f"{counted[each]} {each}" for each in Standing if counted[each])
    yield f"{count_of(plan.managed, 'node')} managed{f': {counts}' if counts else ''} · {places_line(report)}"
    coming = [node for node in plan.nodes if (node.platform_time or plan.now) > plan.now]
    if coming:
        first = min(coming, key=lambda node: (node.platform_time or _NEVER, node.node))
        date = first.platform_time or plan.now
        yield f"next: {kinds_of(first)} of {first.node} {time_left(date, plan.now)}, at {moment_value(date)}"


def _urgency(node: NodeReport) -> tuple[int, datetime, str]:
    return node.standing.urgency, node.plan.platform_time or _NEVER, node.name


def _rows(nodes: Sequence[NodeReport], plan: Plan, width: int | None) -> Iterator[Line]:
    zone = ZoneInfo(plan.settings.time_zone)
    cells = []
    alarmed = [node.standing.alarms for node in nodes]
    for node, alarm in zip(nodes, alarmed, strict=True):
        state = node.standing.upper() if alarm else node.standing.value
        date = comes_at(node.plan)
        when = "no date" if node.plan.events else ""
        if date is not None:
            when = f"{time_left(date, plan.now)}, {clock_text(date, plan.now, zone)}"
        cells.append([safe.line(node.name), state, kinds_of(node.plan) or "none", when])
    said = (" ".join(_why(node, plan).split()) for node in nodes)
    reasons = [text for reason in said for text in with_clocks([reason], plan.now, zone, named=False)]
    widths = [max(cell_len(row[column]) for row in (*cells, [*_HEADS])) for column in range(len(_HEADS) - 1)]
    if width is not None:
        widths[0] = min(widths[0], max(width - sum(widths[1:]) - 2 * len(widths), _NAME))
        names = short_names([row[0] for row in cells], widths[0], "…")
        cells = [[names[row[0]], *row[1:]] for row in cells]
    room = None if width is None else width - sum(widths) - 2 * len(widths)
    beside = room is None or room >= _REASON
    yield Line(_row([*_HEADS[: None if beside else -1]], widths))
    after = [*reasons[1:], None]
    for row, reason, alarm, following in zip(cells, reasons, alarmed, after, strict=True):
        if room is None:
            yield Line(_row([*row, reason], widths), alarm)
        elif room >= _REASON:
            first, *rest = wrapped(reason, room) or [""]
            yield Line(_row([*row, first], widths), alarm)
            yield from (Line(_row(["", "", "", "", part], widths), alarm) for part in rest)
        else:
            yield Line(_row(row, widths), alarm)
            # Nodes that follow each other for one reason share it.
            if reason and reason != following:
                wide = max((width or 0) - len(_INDENT), _REASON)
                parts = wrapped(reason, wide)
                yield from (Line(f"{_INDENT}{part}", alarm) for part in parts)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(padded(cell, size) for cell, size in zip(cells, [*widths, 0], strict=False)).rstrip()


def _why(node: NodeReport, plan: Plan) -> str:
    """Return in a sentence why the node is what it is."""
    about, now, outcome = node.plan, plan.now, node.outcome
    first = next(iter(answers(about, obstacles_in(plan, about))), None)
    reason = with_time_left(first.because.partition("  [")[0], now) if first is not None else ""
    if first is not None and reason.startswith("for ") and first.label != node.standing.value:
        reason = f"{first.label} {reason}"
    progress = about.draining.progress
    done = outcome is not None and outcome.drained is not None
    match node.standing:
        case Standing.MISSED if outcome is not None:
            return with_time_left(outcome.words.removeprefix("missed: "), now)
        case Standing.PLANNED | Standing.AT_RISK:
            before = drain_begins(about, now)
        case Standing.UNGUARDED if about.schedule is not None and about.schedule.observed and not done:
            before = drain_begins(about, now)
        case Standing.DRAINING if progress is not None:
            before = f"{progress.gone} of {count_of(progress.total, 'pod')} gone"
        case Standing.DRAINED if outcome is not None and outcome.drained is not None:
            before = time_left(outcome.drained, now)
        case Standing.NO_DRAIN:
            before = "; ".join(dict.fromkeys(judged.because for judged in about.events))
        case _:
            before = ""
    return "; ".join(part for part in (before, reason) if part)
