"""Plans of the platform's weeks ahead: when they ask for a drain, and when it may start."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.model.event import Kind, PlatformPlan, Signal, Status
from reconciler.passes.assess import join
from reconciler.settings.schema import Settings
from tests.support.builders import NOW, minutes, settings
from tests.support.cases import ASKED_FOR, DAY, OFFER, START, TAKEN, judged_plan

NIGHTS = 'windows: [{name: nights, start: "22:00", end: "02:00"}]'
WITHOUT = replace(OFFER, offered=False)


def taken(text: str) -> Settings:
    return settings(f"sources: {{arm: {{enabled: true, selfService: true}}}}\n{text}")


@pytest.mark.parametrize(
    ("later", "asks"),
    [
        pytest.param(timedelta(), False, id="two weeks before"),
        pytest.param(13 * DAY - minutes(1), False, id="a day and a minute before"),
        pytest.param(13 * DAY, True, id="a day before"),
        pytest.param(15 * DAY, True, id="in Azure's own window"),
    ],
)
def test_a_plan_asks_from_a_day_before_azures_own_window_on(later: timedelta, asks: bool) -> None:
    now = NOW + later
    judged = judged_plan(settings("sources: {arm: {enabled: true, ahead: 1d}}"), now=now)

    assert judged.asks is asks
    assert judged.until == (None if asks else START - DAY)


def test_how_far_ahead_is_a_setting_and_never_less_than_the_lead_time() -> None:
    none = settings("sources: {arm: {enabled: true, ahead: 0s}}")

    assert not judged_plan(none, now=START - minutes(16)).asks
    assert judged_plan(none, now=START - minutes(15)).asks


def test_an_offer_that_is_taken_asks_at_once_and_starts_where_no_window_is_set() -> None:
    judged = judged_plan(TAKEN)

    assert judged.asks
    assert judged.may_start


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (WITHOUT, "not allowed"),
        (replace(OFFER, offer_end=NOW), "over"),
        (replace(OFFER, offer_start=NOW + minutes(1)), "not begun"),
    ],
)
def test_an_offer_that_does_not_stand_asks_for_nothing(plan: PlatformPlan, why: str) -> None:
    assert not judged_plan(TAKEN, plan=plan).asks, why


def test_an_offer_is_taken_inside_our_own_windows_only() -> None:
    before = judged_plan(taken(NIGHTS))
    inside = judged_plan(taken(NIGHTS), now=NOW.replace(hour=23))

    assert (before.asks, before.may_start, before.until) == (True, False, NOW.replace(hour=22))
    assert "the offer of Azure waits for a window" in before.opening.words
    assert inside.may_start


def test_an_offer_starts_on_sight_only_where_a_window_is_open() -> None:
    text = f"{NIGHTS}\nevents: {{Redeploy: {{outsideWindow: Immediately}}}}"

    assert not judged_plan(taken(text)).may_start


def test_near_azures_own_window_the_deadline_rule_is_back() -> None:
    now = START - minutes(15)
    judged = judged_plan(taken(NIGHTS), now=now)

    assert judged.may_start
    assert "deadline" in judged.opening.words


def test_a_plan_without_a_date_is_reported_and_requires_nothing() -> None:
    judged = judged_plan(ASKED_FOR, not_before=None)

    assert not judged.asks
    assert "its time is unknown" in judged.because


@pytest.mark.parametrize(
    ("choice", "notice", "waits"),
    [("Auto", True, True), ("Auto", False, False), ("Always", False, True), ("Never", True, False)],
)
def test_a_plan_of_days_waits_for_its_notice_where_one_comes(choice: str, notice: bool, waits: bool) -> None:
    text = f"sources: {{arm: {{enabled: true, waitForNotice: {choice}}}}}"
    judged = judged_plan(settings(text), plan=WITHOUT, now=START - minutes(15), notice=notice)

    assert judged.waits_for_notice is waits
    assert judged.asks is not waits
    assert (judged.times is None) is waits


def test_ignored_kinds_and_karpenters_nodes_are_judged_as_without_a_plan() -> None:
    assert not judged_plan(taken("events: {Redeploy: {drain: false}}")).asks


def signal(source: str, not_before: datetime | None, plan: PlatformPlan | None = None) -> Signal:
    return Signal(source, Kind.REDEPLOY, Status.SCHEDULED, not_before=not_before, plan=plan)


def test_a_plan_that_another_source_reports_as_an_event_is_imminent() -> None:
    (alone,) = join("a", [signal("arm", START, plan=OFFER)])
    (joined,) = join("a", [signal("arm", START, plan=OFFER), signal("imds", START)])
    (started,) = join("a", [signal("arm", START, plan=OFFER), signal("imds", None)])
    other = join("a", [signal("arm", START, plan=OFFER), signal("imds", NOW + minutes(10))])

    assert alone.plan == OFFER
    assert joined.plan is None
    assert started.plan is None
    assert [event.plan for event in other] == [None, OFFER]
