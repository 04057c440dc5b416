"""One report, for processes of law 11: they start faster without what searches properties."""

from __future__ import annotations

from reconciler.report.document import as_json, to_report
from tests.support import builders
from tests.support.builders import IMDS, REQUEST
from tests.support.worlds import look, world_of


def report() -> str:
    """A pass over nodes with several sources each, as JSON."""
    published = builders.published(
        {"EventId": "B2", "EventType": "Reboot", "EventStatus": "Started", "NotBefore": ""},
        {"EventId": "A1", "EventType": "Freeze", "EventStatus": "Scheduled", "NotBefore": "soon"},
    )
    nodes = [
        builders.node(
            f"n{number}", zone=str(number % 3), annotations={IMDS: published, REQUEST: builders.DRAIN_NOW}
        )
        for number in range(9)
    ]
    world = world_of(nodes)
    plan, outcomes = look(world, builders.settings("budget: {perZone: 1}"))
    return as_json(to_report(plan, outcomes, rehearsed=False).document)
