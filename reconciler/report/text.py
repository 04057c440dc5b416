"""The report for people, as plain text and as Markdown: what happens, why, and what holds the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from reconciler.calendar.values import format_duration, in_zone, with_time_left
from reconciler.model.limits import count_of, first_of
from reconciler.model.outcome import RECORD, ActionKind
from reconciler.model.plan import Plan
from reconciler.model.values import replace
from reconciler.report import safe
from reconciler.report.acting import By
from reconciler.report.columns import NodeReport, Row, action_row, for_people, state_line
from reconciler.report.document import Report
from reconciler.report.lines import folded, with_clocks
from reconciler.report.moves import pod_lines
from reconciler.report.people import alarms
from reconciler.report.values import (
    NOT_DONE,
    moment_value,
    outcome_lines,
    settings_value,
    unseen_line,
    unseen_lines,
)

_TEXT_AT = 12
"""The column at which the text of a row begins, after its label."""

COMMAND_ROW = "  do  "
"""The begin of a row with a command. It is never folded, so that it can be copied as a whole."""

QUIET = "no node has an event, and none is in maintenance"

_NAMED = 5
"""Nodes that a line names."""


def as_text(report: Report, width: int | None = None, *, wide: bool = False) -> str:
    """Return the report as text; every hold and every unknown is in it.

    A line that is longer than `width` columns goes on below its own text; None: lines have no limit. `wide`:
    also with what a drain would do to each pod.
    """
    plan = report.plan
    lines = [headline(report), *settings_lines(plan), budget_line(report), *alarms(plan)]
    lines += lines_about(report)
    lines += _rows(report, wide=wide)
    if report.pods is not None:
        lines += ["", *(line.text for line in pod_lines(report.pods, plan.now))]
    if is_quiet(report):
        lines += ["", QUIET]
    failed = outcome_lines(report.outcomes)
    if failed:
        lines += ["", *failed]
    return shown(lines, ZoneInfo(plan.settings.time_zone), width, now=plan.now)


def lines_about(report: Report) -> list[str]:
    """Return the lines above the rows: profiles, notes, what could not be seen, and the filter."""
    plan = report.plan
    notes = [f"note: {note}" for note in plan.notes]
    return [*profile_lines(plan), *notes, *unseen_lines(plan.unseen), *filter_lines(report)]


def rows_as_text(report: Report, width: int | None = None) -> str:
    """Return the rows of the nodes as text, without what is above them."""
    zone = ZoneInfo(report.plan.settings.time_zone)
    return shown(_rows(report, wide=False), zone, width, now=report.plan.now)


def _rows(report: Report, *, wide: bool) -> list[str]:
    lines = []
    for node in report.nodes:
        if not node.plan.has_news:
            continue
        undone = _undone(report, node)
        by = By.NOBODY if undone else report.by
        lines += ["", node_heading(node, by)]

        rows: list[Row] = []
        done = replace(node, actions=tuple(kind for kind in node.actions if kind not in undone))
        for column in for_people():
            rows += column.rows(done, report.by) if column.rows is not None else ()
        rows += action_row("not done", undone)
        preview = node.plan.draining.preview
        for pod in preview.pods if wide and preview is not None else ():
            # A pod that is waited for has its row in each form.
            if pod.action != "wait":
                because = f": {'; '.join(pod.reasons)}" if pod.reasons else ""
                rows.append(("pod", f"{pod.pod}: {pod.action}{because}"))
        lines += [row(label, text) for label, text in rows]
    return lines + unknown_lines([node for node in report.nodes if not node.plan.has_news])


_FAR_AWAY = re.compile(r"\bin \d+[dhms]|\d[dhms] ago\b|\bnow[,)]")
"""How far away a moment of a row is: `(in 14m)`, `2h ago`, `now, at`."""


def shown(
    lines: Iterable[str],
    zone: ZoneInfo,
    width: int | None,
    *,
    now: datetime | None = None,
    near: datetime | None = None,
) -> str:
    """Return the lines as people read them: without control characters, with moments in `zone`, folded.

    With `now` (aware), each row says of its first moment how far away it is. With `near` (aware), a moment of
    its day is a time of day, and the zone is named once in all lines.
    """
    if now is not None:
        lines = [
            with_time_left(line, now) if line.startswith("  ") and not _FAR_AWAY.search(line) else line
            for line in lines
        ]
    if near is None:
        written = [safe.line(in_zone(line, zone)) for line in lines]
    else:
        written = with_clocks(lines, near, zone)
    return "".join(
        f"{line}\n"
        for each in written
        for line in folded(
            each, None if each.startswith(COMMAND_ROW) else width, _TEXT_AT if each.startswith("  ") else None
        )
    )


def is_quiet(report: Report) -> bool:
    """Whether the plan has no row, also none that a filter hides."""
    hidden = report.filter.of if report.filter else 0
    return not report.nodes and not hidden


def headline(report: Report) -> str:
    """Return the first line: when, in which mode, how many nodes."""
    written = nothing_written(report.by)
    mode = f"mode {report.plan.mode}{f', {written}' if written else ''}"
    return f"{moment_value(report.plan.now)} · {count_of(report.plan.managed, 'node')} managed · {mode}"


def nothing_written(by: By) -> str:
    """Return in words that a plan was only rehearsed, empty if it was not.

    In mode Observe a process may write what it has observed, so only nodes are spoken of.
    """
    words = {By.NEXT_PASS: "this command writes nothing, the reconciler acts"}
    return words.get(by, "dry run: no node is changed") if by is not By.THIS_PASS else ""


def settings_lines(plan: Plan) -> list[str]:
    """Return the line that says which settings are in force, and since when; none if there is no file."""
    settings = settings_value(plan.settings.version, plan.now)
    if settings is None:
        return []
    age = settings["ageSeconds"]
    loaded = "" if age is None else f", loaded {format_duration(timedelta(seconds=age))} ago"
    return [f"settings {settings['hash']}{loaded}"]


def places_line(report: Report) -> str:
    """Return how many nodes are out of service, or would be."""
    budget = report.plan.budget
    begin = "out of service"
    if any(node.starts for node in report.plan.nodes):
        # What a dry run would start takes a place only if it were started.
        after = {By.NEXT_PASS: "out of service after the next pass", By.NOBODY: "would be out of service"}
        begin = after.get(report.by, begin)
    return f"{begin}: {len(budget.holders)} of at most {budget.limit}"


def budget_line(report: Report) -> str:
    """Return which nodes are out of service, the first few by name."""
    line = places_line(report)
    named = [f"{node} ({because})" for node, because in report.plan.budget.holders]
    return f"{line}: {first_of(named, _NAMED)}" if named else line


def profile_lines(plan: Plan) -> list[str]:
    """Return how many nodes of each profile are in which state; none without profiles of features."""
    states: dict[str, list[str]] = {}
    for nodes in plan.profiles:
        state = nodes.state.value if nodes.state is not None else "not known"
        states.setdefault(nodes.profile, []).append(f"{nodes.count} {state}")
    return [f"profile {name}: {', '.join(counts)}" for name, counts in states.items()]


def filter_lines(report: Report) -> list[str]:
    """Return the lines about the filter: which rows are shown, and which named nodes have none."""
    chosen = report.filter
    if chosen is None:
        return []
    parts = [f"only {chosen.only}"] if chosen.only else []
    parts += [first_of(chosen.nodes, _NAMED)] if chosen.nodes else []
    parts += [f"nodes with {chosen.selector}"] if chosen.selector else []
    parts += [f"nodes that run pods of {chosen.namespace}"] if chosen.namespace else []
    lines = [f"rows: {chosen.shown} of {chosen.of} shown ({'; '.join(parts)})"]
    if chosen.quiet:
        lines.append(f"nothing to report: {first_of(chosen.quiet, _NAMED)}")
    return lines


def _undone(report: Report, node: NodeReport) -> list[ActionKind]:
    """Return the node's actions that this pass did not do, if any of its actions failed or was put off."""
    results = [outcome for outcome in report.outcomes if outcome.node == node.name]
    if not any(outcome.result in NOT_DONE for outcome in results):
        return []
    done = {outcome.action for outcome in results if outcome.result not in NOT_DONE}
    if done - {kind.name for kind in node.actions}:
        # The outcome of a change of the record has a more precise name.
        done.add(RECORD.name)
    return [kind for kind in node.actions if kind.name not in done]


def unknown_lines(nodes: list[NodeReport]) -> list[str]:
    """Nodes with nothing but an unknown source share a line for each reason."""
    counted = Counter(reason for node in nodes for reason in node.plan.unknowns)
    lines = [""] if counted else []
    for reason in sorted(counted):
        names = [node.name for node in nodes if reason in node.plan.unknowns]
        lines.append(f"unknown: {reason}: {first_of(names, 3)}")
    return lines


def node_heading(node: NodeReport, by: By) -> str:
    """Return the line above the rows of a node: its name, where it is, and its state."""
    parts = [column.heading(node) for column in for_people() if column.heading is not None]
    place = ", ".join(part for part in parts if part)
    return f"{node.name}{f' ({place})' if place else ''}: {state_line(node, by)}"


def row(label: str, text: str) -> str:
    """Return a row below the heading of a node: its label, and its text in a column of its own."""
    # What a cloud or a person wrote may have lines of its own; here one row is one line.
    return f"  {label:<{_TEXT_AT - 2}}{' '.join(text.split())}"


def as_markdown(report: Report) -> str:
    """Return the report as Markdown, for a ticket or a chat: a table of nodes, then each node's reasons."""
    plan = report.plan
    lines = ["# Node maintenance", ""]
    for line in (
        headline(report),
        *settings_lines(plan),
        budget_line(report),
        *alarms(plan),
        *profile_lines(plan),
    ):
        lines += [safe.markdown(line), ""]
    quoted = [*plan.notes, *(f"Could not see: {unseen_line(unseen)}" for unseen in plan.unseen)]
    quoted += [f"{line[:1].upper()}{line[1:]}" for line in filter_lines(report)]
    lines += [f"> {safe.markdown(line)}" for line in quoted]
    if report.nodes:
        by = report.by
        cells = [column.cell for column in for_people() if column.cell is not None]
        heads = [cell.headers.get(by, cell.header) for cell in cells]
        rows = ([cell.text(node, by) for cell in cells] for node in report.nodes)
        lines += ["", *markdown_table(heads, rows)]
        for node in report.nodes:
            points = [point for column in for_people() if column.points for point in column.points(node)]
            lines += ["", f"## {safe.markdown(node.name)}", ""] if points else []
            for point in points:
                code = f" (`{point.code}`)" if point.code else ""
                lines.append(f"- {safe.markdown(point.text)}{code}")
    elif is_quiet(report):
        lines.append("No node has an event, and none is in maintenance.")
    if report.pods is not None:
        head, *pods = pod_lines(report.pods, plan.now)
        lines += ["", f"## {safe.markdown(head.text)}", "", *(f"- {safe.markdown(pod.text)}" for pod in pods)]
    lines += [f"- {safe.markdown(line)}" for line in outcome_lines(report.outcomes)]
    return markdown_page(lines, ZoneInfo(plan.settings.time_zone))


def markdown_table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table; the texts of its cells may be from outside."""
    yield f"|{''.join(f' {head} |' if head else ' |' for head in heads)}"
    yield f"|{'---|' * len(heads)}"
    for cells in rows:
        yield f"| {' | '.join(map(safe.markdown, cells))} |"


def markdown_page(lines: Iterable[str], zone: ZoneInfo) -> str:
    """Return the page of lines in which texts from outside are safe; its moments are in `zone`."""
    # Nothing that makes text safe changes a moment.
    return "\n".join(in_zone(line, zone) for line in lines).rstrip() + "\n"
