"""cordon: close the node, and remember whose cordon it is."""

from __future__ import annotations

from reconciler.model.event import Kind, MaintenanceEvent
from reconciler.model.node import Node
from reconciler.model.record import CaseRecord, Cordon
from reconciler.profiles.situation import Effects
from reconciler.profiles.triggers.nodes import cordon
from reconciler.settings.schema import Settings
from tests.support.builders import NOW, event, judged, minutes, node, settings, situation


def test_an_open_node_is_closed_and_the_cordon_is_ours() -> None:
    effects = cordon(situation(node(), judged(event())), Effects(CaseRecord()))

    assert effects.unschedulable is True
    assert effects.record.cordon is Cordon.OURS
    assert [notice.reason for notice in effects.notices] == ["MaintenanceCordon"]


def message(chosen: Settings, reported: MaintenanceEvent, *others: Node) -> str:
    on = node()
    told = situation(on, judged(reported, chosen), chosen=chosen, fleet=(on, *others))
    (notice,) = cordon(told, Effects(CaseRecord())).notices
    return notice.message


def test_the_notice_names_the_open_window_its_end_and_the_place_in_the_budget() -> None:
    chosen = settings('budget: {maxUnavailable: 3}\nwindows: [{name: lunch, start: "11:00", end: "13:00"}]')
    said = message(chosen, event(), node("b", unschedulable=True), node("c"), node("d"))

    assert said.startswith("cordoned: Reboot requires a drain; window lunch is open until ")
    assert "13:00" in said
    assert said.endswith("; budget: 2 of 3 places taken")


def test_the_notice_names_the_deadline_and_the_freeze_that_it_overruled() -> None:
    chosen = settings("notAllowed: [{name: sale, start: 2026-11-21, end: 2026-11-21T18:00}]")
    said = message(chosen, event(not_before=NOW + minutes(10)))

    assert "the deadline 2026-11-21T11:55:00Z passed 5m ago, which overrules: not allowed: sale" in said


def test_the_notice_says_that_an_exempt_kind_took_more_than_the_budget() -> None:
    chosen = settings("budget: {maxUnavailable: 1}")
    said = message(chosen, event(Kind.PREEMPT), node("b", unschedulable=True))

    assert said.endswith("budget: 2 of 1 places taken (exempt)")


def test_an_existing_cordon_is_foreign_and_nothing_is_written_or_reported() -> None:
    effects = cordon(situation(node(unschedulable=True)), Effects(CaseRecord()))

    assert effects.unschedulable is None
    assert effects.record.cordon is Cordon.FOREIGN
    assert effects.notices == ()
