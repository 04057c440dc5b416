"""Each stage of an escalation is reported once for a drain."""

from __future__ import annotations

from reconciler.features.events.process import Escalations
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.ports import Notification
from reconciler.model.values import replace


class Remembering:
    """A notifier that remembers what it was given; it settles nothing while it is `away`."""

    def __init__(self, *, away: bool = False) -> None:
        self.given: list[Notification] = []
        self.away = away

    def notify(self, notification: Notification) -> bool:
        self.given.append(notification)
        return not self.away


def drain(*escalations: str) -> DrainProgress:
    return DrainProgress("a", "uid-a", Phase.RUNNING, escalations=escalations)


def warning(text: str) -> Notification:
    return Notification("a", "uid-a", Notice("MaintenanceEscalated", text, NoticeType.WARNING))


def given(people: Remembering) -> list[Notification]:
    """What the notifier was given, without the names."""
    return [replace(one, notice=replace(one.notice, once="")) for one in people.given]


def test_each_stage_is_reported_once() -> None:
    reports, people = Escalations(), Remembering()
    reports.report([drain()], people)
    reports.report([drain("it is slow")], people)
    reports.report([drain("it is slow")], people)
    reports.report([drain("it is slow", "it deletes")], people)

    assert given(people) == [warning("it is slow"), warning("it deletes")]


def test_a_later_drain_of_the_node_is_reported_again() -> None:
    reports, people = Escalations(), Remembering()
    for drains in ([drain("it is slow")], [], [drain("it is slow")]):
        reports.report(drains, people)

    assert given(people) == [warning("it is slow")] * 2
    assert len({one.notice.once for one in people.given}) == 2


def test_what_could_not_be_sent_is_sent_again_under_the_same_name_and_the_rest_waits() -> None:
    reports, people = Escalations(), Remembering(away=True)
    reports.report([drain("it is slow", "it deletes")], people)
    people.away = False
    reports.report([drain("it is slow", "it deletes")], people)
    reports.report([drain("it is slow", "it deletes")], people)

    assert given(people) == [warning("it is slow"), warning("it is slow"), warning("it deletes")]
    assert [one.notice.once for one in people.given].count(people.given[0].notice.once) == 2
