"""Each stage of an escalation is reported once for a drain."""

from __future__ import annotations

from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.notification import Notification
from reconciler.model.plan import Notice, NoticeType
from reconciler.notifiers.escalations import Escalations
from tests.notifiers.test_registry import Remembering


def drain(*escalations: str) -> DrainProgress:
    return DrainProgress("a", "uid-a", Phase.RUNNING, escalations=escalations)


def warning(text: str) -> Notification:
    return Notification("a", "uid-a", Notice("MaintenanceEscalated", text, NoticeType.WARNING))


def test_each_stage_is_reported_once() -> None:
    reports, people = Escalations(), Remembering()
    reports.report([drain()], people)
    reports.report([drain("it is slow")], people)
    reports.report([drain("it is slow")], people)
    reports.report([drain("it is slow", "it deletes")], people)

    assert people.given == [warning("it is slow"), warning("it deletes")]


def test_a_later_drain_of_the_node_is_reported_again() -> None:
    reports, people = Escalations(), Remembering()
    for drains in ([drain("it is slow")], [], [drain("it is slow")]):
        reports.report(drains, people)

    assert people.given == [warning("it is slow")] * 2
