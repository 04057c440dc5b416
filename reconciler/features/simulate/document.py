"""The result of a comparison as one document, which is printed as JSON or as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from msgspec import Struct

from reconciler import __version__
from reconciler.features.simulate.scenario import Scenario
from reconciler.features.simulate.scorer import Day, Fate, Score
from reconciler.model.moments import to_text
from reconciler.model.selector import LabelSelector
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
        "pools": len({one.pool for one in scenario.nodes}),
        "zones": len({one.zone for one in scenario.nodes}),
        "events": len(scenario.events),
        "source": scenario.source,
        "notes": [
            *scenario.notes,
            *dict.fromkeys(note for one in policies for note in _unmatched(one, scenario)),
        ],
        "policies": [_policy(one) for one in policies],
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
        "worstDays": [_day(one) for one in score.worst_days()],
    }


def _day(day: Day) -> Document:
    return {
        "date": day.day.isoformat(),
        "missed": day.missed,
        "late": day.late,
        "budgetRefusals": day.refused,
        "mostOutOfService": day.most_out,
    }


def _hours(time: timedelta) -> float:
    return round(time / timedelta(hours=1), 1)


def _unmatched(policy: Policy, scenario: Scenario) -> Iterable[str]:
    """Yield which selectors of a policy select no node that is played: what they say is not tried."""
    kinds = list({tuple(sorted(one.node().labels.items())) for one in scenario.nodes})
    settings = policy.settings
    groups: tuple[tuple[str, Iterable[LabelSelector]], ...] = (
        ("windows", (one.node_selector for one in settings.windows)),
        ("notAllowed", (one.node_selector for one in settings.not_allowed)),
        ("overrides", (one.node_selector for one in settings.overrides)),
    )
    places = [("nodeSelector", settings.node_selector)]
    places += [
        (f"{key}[{index}].nodeSelector", one) for key, some in groups for index, one in enumerate(some)
    ]
    for place, selector in places:
        if not any(selector.matches(dict(labels)) for labels in kinds):
            yield f"{policy.name}: {place} selects none of these nodes, so it is not tried"
