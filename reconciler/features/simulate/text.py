"""The comparison of policies as plain text: one row for each figure, one column for each policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from zoneinfo import ZoneInfo

from reconciler.report.text import shown
from reconciler.report.values import Document

_LABEL = 34
_CELL = 11
_HEADS = ("new", "against")


def as_text(document: Document, width: int | None = None) -> str:
    """Return the comparison as text; moments are in the time zone of the first policy.

    A line that is longer than `width` columns goes on below itself; None: lines have no limit. The table has
    58 columns.
    """
    policies = document["policies"]
    zone = ZoneInfo(policies[0]["timeZone"])
    lines = [_headline(document)]
    heads = _HEADS[: len(policies)]
    for head, policy in zip(heads, policies, strict=True):
        known = f" (settings {policy['settings']})" if policy["settings"] else ""
        lines.append(f"{head}: {policy['name']}{known}")
    lines += [f"note: {note}" for note in document["notes"]]
    lines += ["", *_table(heads, policies)]
    for head, policy in zip(heads, policies, strict=True):
        lines += ["", *_details(head, policy)]
    return shown(lines, zone, width)


def _headline(document: Document) -> str:
    nodes = f"{document['nodes']:,} nodes in {_counted(document['pools'], 'pool')}"
    zones = f"{nodes} and {_counted(document['zones'], 'zone')}"
    events = f"{document['events']:,} events, {document['source']}"
    return f"{zones}, {document['from']} to {document['to']}: {events}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _table(heads: Sequence[str], policies: Sequence[Document]) -> Iterator[str]:
    yield f"{'':<{_LABEL}}" + "".join(f"{head:>{_CELL}}" for head in heads)
    for label, cell in _ROWS:
        yield f"{label:<{_LABEL}}" + "".join(f"{cell(policy):>{_CELL}}" for policy in policies)


def _details(head: str, policy: Document) -> Iterator[str]:
    missed = {kind: counts["missed"] for kind, counts in policy["kinds"].items() if counts["missed"]}
    words = ", ".join(f"{count} {kind}" for kind, count in missed.items())
    yield f"{head}: missed {words or 'none'}"
    if policy["mostOutOfServiceAt"]:
        yield f"  most out of service at {policy['mostOutOfServiceAt']}"
    for day in policy["worstDays"]:
        facts = (
            (day["missed"], "missed"),
            (day["late"], "late"),
            (day["budgetRefusals"], "refused by the budget"),
        )
        said = ", ".join(f"{count} {what}" for count, what in facts if count)
        yield f"  bad day {day['date']}: {said}; at most {day['mostOutOfService']} out of service"


def _count(key: str) -> Callable[[Document], str]:
    return lambda policy: f"{policy[key]:,}"


def _hours(key: str) -> Callable[[Document], str]:
    return lambda policy: f"{policy[key]:,.1f}"


_ROWS: tuple[tuple[str, Callable[[Document], str]], ...] = (
    ("events that require a drain", _count("requireDrain")),
    ("  drained in a window", _count("drainedInWindow")),
    ("  drained outside of windows", _count("drainedOutsideWindow")),
    ("  late", _count("late")),
    ("  missed", _count("missed")),
    ("    with less notice than a drain", _count("missedWithoutTime")),
    ("  cancelled", _count("cancelled")),
    ("  open at the end", _count("open")),
    ("events that are ignored", _count("ignored")),
    ("events that no source reports", _count("unseen")),
    ("drains", _count("drains")),
    ("node-hours empty", _hours("nodeHoursEmpty")),
    ("node-hours out of service", _hours("nodeHoursOutOfService")),
    ("most nodes out of service at once", _count("mostOutOfService")),
    ("refusals by the budget", _count("budgetRefusals")),
    ("node-hours waited for the budget", _hours("nodeHoursWaitedForBudget")),
)
