"""The result of a comparison as one document, which is printed as JSON or as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler import __version__
from reconciler.features.simulate.scenario import Scenario
from reconciler.features.simulate.scorer import Fate, Score
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.model.selector import LabelSelector
from reconciler.report.text import shown
from reconciler.report.values import Document
from reconciler.settings.schema import Settings

VERSION = 1


class Policy(Struct, frozen=True):
    """One of the compared policies: the name of its file, its settings, and its score."""

    name: str
    settings: Settings
    score: Score


def to_document(scenario: Scenario, policies: Sequence[Policy]) -> Document:
    """Return the comparison; moments are RFC 3339 in UTC, days are in the time zone of their policy."""
    return {
        "version": VERSION,
        "program": __version__,
        "from": to_text(scenario.start),
        "to": to_text(scenario.end),
        "nodes": len(scenario.nodes),
        "pools": len({node.pool for node in scenario.nodes}),
        "zones": len({node.zone for node in scenario.nodes}),
        "events": len(scenario.events),
        "source": scenario.source,
        "notes": [
            *scenario.notes,
            *dict.fromkeys(note for policy in policies for note in _unmatched(policy, scenario)),
        ],
        "policies": [_policy(policy) for policy in policies],
    }


def _policy(policy: Policy) -> Document:
    score, version = policy.score, policy.settings.version
    return {
        "name": policy.name,
        "settings": version.hash if version is not None else None,
        "timeZone": policy.settings.time_zone.key,
        "requireDrain": score.asked,
        **{fate.value: score.fates.get(fate, 0) for fate in Fate},
        "missedWithoutTime": score.hopeless,
        "drains": score.drains,
        "nodeHoursEmpty": _hours(score.empty),
        "nodeHoursOutOfService": _hours(score.out),
        "mostOutOfService": score.most_out,
        "mostOutOfServiceAt": to_text(score.most_out_at) if score.most_out_at is not None else None,
        "budgetRefusals": score.refused,
        "nodeHoursWaitedForBudget": _hours(score.waited),
        "kinds": {
            kind.value: {fate.value: counts.get(fate, 0) for fate in Fate}
            for kind, counts in score.by_kind.items()
        },
        "worstDays": [
            {
                "date": day.day.isoformat(),
                "missed": day.missed,
                "late": day.late,
                "budgetRefusals": day.refused,
                "mostOutOfService": day.most_out,
            }
            for day in score.worst_days()
        ],
    }


def _hours(time: timedelta) -> float:
    return round(time / timedelta(hours=1), 1)


def _unmatched(policy: Policy, scenario: Scenario) -> Iterable[str]:
    """Yield which selectors of a policy select no node that is played: what they say is not tried."""
    kinds = list({tuple(sorted(node.node().labels.items())) for node in scenario.nodes})
    settings = policy.settings
    groups: tuple[tuple[str, Iterable[LabelSelector]], ...] = (
        ("windows", (window.node_selector for window in settings.windows)),
        ("notAllowed", (one.node_selector for one in settings.not_allowed)),
        ("overrides", (override.node_selector for override in settings.overrides)),
    )
    places = [("nodeSelector", settings.node_selector)]
    places += [
        (f"{key}[{index}].nodeSelector", one) for key, some in groups for index, one in enumerate(some)
    ]
    for place, selector in places:
        if not any(selector.matches(dict(labels)) for labels in kinds):
            yield f"{policy.name}: {place} selects none of these nodes, so it is not tried"


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
    nodes, pools = count_of(document["nodes"], "node"), count_of(document["pools"], "pool")
    fleet = f"{nodes} in {pools} and {count_of(document['zones'], 'zone')}"
    events = f"{count_of(document['events'], 'event')}, {document['source']}"
    lines = [f"{fleet}, {document['from']} to {document['to']}: {events}"]
    heads = _HEADS[: len(policies)]
    for head, policy in zip(heads, policies, strict=True):
        known = f" (settings {policy['settings']})" if policy["settings"] else ""
        lines.append(f"{head}: {policy['name']}{known}")
    lines += [f"note: {note}" for note in document["notes"]]

    lines += ["", f"{'':<{_LABEL}}" + "".join(f"{head:>{_CELL}}" for head in heads)]
    for label, cell in _ROWS:
        lines.append(f"{label:<{_LABEL}}" + "".join(f"{cell(policy):>{_CELL}}" for policy in policies))

    for head, policy in zip(heads, policies, strict=True):
        missed = {kind: counts["missed"] for kind, counts in policy["kinds"].items() if counts["missed"]}
        words = ", ".join(f"{count} {kind}" for kind, count in missed.items())
        lines += ["", f"{head}: missed {words or 'none'}"]
        if policy["mostOutOfServiceAt"]:
            lines.append(f"  most out of service at {policy['mostOutOfServiceAt']}")
        for day in policy["worstDays"]:
            facts = (
                (day["missed"], "missed"),
                (day["late"], "late"),
                (day["budgetRefusals"], "refused by the budget"),
            )
            bad = ", ".join(f"{count} {what}" for count, what in facts if count)
            lines.append(f"  bad day {day['date']}: {bad}; at most {day['mostOutOfService']} out of service")
    return shown(lines, zone, width)


def _count_cell(key: str) -> Callable[[Document], str]:
    return lambda policy: f"{policy[key]:,}"


def _hours_cell(key: str) -> Callable[[Document], str]:
    return lambda policy: f"{policy[key]:,.1f}"


_ROWS: tuple[tuple[str, Callable[[Document], str]], ...] = (
    ("events that require a drain", _count_cell("requireDrain")),
    ("  drained in a window", _count_cell("drainedInWindow")),
    ("  drained outside of windows", _count_cell("drainedOutsideWindow")),
    ("  late", _count_cell("late")),
    ("  missed", _count_cell("missed")),
    ("    with less notice than a drain", _count_cell("missedWithoutTime")),
    ("  cancelled", _count_cell("cancelled")),
    ("  open at the end", _count_cell("open")),
    ("events that are ignored", _count_cell("ignored")),
    ("events that no source reports", _count_cell("unseen")),
    ("drains", _count_cell("drains")),
    ("node-hours empty", _hours_cell("nodeHoursEmpty")),
    ("node-hours out of service", _hours_cell("nodeHoursOutOfService")),
    ("most nodes out of service at once", _count_cell("mostOutOfService")),
    ("refusals by the budget", _count_cell("budgetRefusals")),
    ("node-hours waited for the budget", _hours_cell("nodeHoursWaitedForBudget")),
)
