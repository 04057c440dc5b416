"""What the settings make of an event: whether it asks, whether it may start, and the deadline rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.azure import is_degraded
from reconciler.model.event import Cause, Initiator, Kind, Signal, Status, WaitForNotice
from reconciler.model.moments import to_text
from reconciler.model.node import KARPENTER_LABEL
from reconciler.model.snapshot import Remediator
from reconciler.passes.assess import join
from tests.support import builders
from tests.support.builders import NOW, event, judged, minutes
from tests.support.cases import ASKED_FOR, DAY, OFFER, START

OPEN = 'windows: [{name: open, start: "11:00", end: "13:00"}]'
TWO = 'windows: [{name: two, start: "14:00", end: "15:00"}]'  # opens in two hours
EARLY = "events: {Redeploy: {start: Early}}"
SALE = "notAllowed: [{name: sale, start: 2026-11-21T11:00, end: 2026-11-21T18:00, reason: sale}]"
ABSOLUTE = "notAllowed: [{name: sale, start: 2026-11-21T11:00, end: 2026-11-21T18:00, absolute: true}]"
NEVER = "events: {Reboot: {outsideWindow: Never}}"
AT_ONCE = "events: {Reboot: {outsideWindow: Immediately}}"
LM = "events: {LiveMigration: {drain: true, outsideWindow: AtDeadline}}"
STARTED = Status.STARTED
DUE = {"status": STARTED}


def _at(later: float) -> dict[str, Any]:
    return {"not_before": NOW + minutes(later)}


@pytest.mark.parametrize(
    ("text", "what", "may_start", "until", "overruled"),
    [
        pytest.param("", {}, True, None, False, id="no windows: any time"),
        pytest.param(OPEN, _at(60), True, None, False, id="in a window"),
        pytest.param(TWO, {}, False, 120, False, id="no date: waits for the window"),
        pytest.param(TWO, _at(300), False, 120, False, id="the window opens before the deadline"),
        pytest.param(TWO, _at(60), False, 45, False, id="no window before the deadline: at the deadline"),
        pytest.param(TWO, _at(135), False, 120, False, id="the window opens just when the deadline is"),
        pytest.param(TWO, _at(15), True, None, True, id="the deadline is reached"),
        pytest.param(TWO, _at(-60), True, None, True, id="the deadline is long past"),
        pytest.param(TWO, DUE, True, None, True, id="started: due now"),
        pytest.param(TWO, {"date_unreadable": True}, True, None, True, id="an unreadable date: due now"),
        pytest.param(f"{TWO}\n{NEVER}", _at(5), False, 120, False, id="Never, whatever the deadline"),
        pytest.param(f"{TWO}\n{NEVER}", DUE, False, 120, False, id="Never, also when started"),
        pytest.param(f"{TWO}\n{AT_ONCE}", _at(300), True, None, True, id="Immediately: on sight"),
        pytest.param(SALE, _at(300), False, 285, False, id="not allowed: until the deadline"),
        pytest.param(SALE, _at(500), False, 360, False, id="not allowed: until it is over"),
        pytest.param(SALE, _at(10), True, None, True, id="the deadline beats what is not allowed"),
        pytest.param(f"{SALE}\n{OPEN}", _at(300), False, 285, False, id="not allowed beats a window"),
        pytest.param(ABSOLUTE, _at(10), False, 360, False, id="unless it is absolute"),
        pytest.param(f"{ABSOLUTE}\n{AT_ONCE}", DUE, False, 360, False, id="absolute beats everything"),
        pytest.param(f"{ABSOLUTE}\n{NEVER}", _at(10), False, 360, False, id="absolute and Never"),
    ],
)
def test_the_deadline_rule(
    text: str, what: dict[str, Any], may_start: bool, until: float | None, overruled: bool
) -> None:
    one = judged(event(**what), builders.settings(text))

    assert one.asks
    assert one.starts
    assert one.may_start is may_start
    assert one.opening.words
    assert one.until == (None if until is None else NOW + minutes(until))
    assert bool(one.opening.overruled) is overruled


def _frozen(start: str, end: str, *, absolute: bool = True) -> str:
    on = str(absolute).lower()
    return (
        f"{{name: f{start[:2]}{end[:2]}, start: 2026-11-21T{start}, end: 2026-11-21T{end}, absolute: {on}}}"
    )


FORETOLD = {
    "no freeze: at the deadline": ("", 45),
    "an absolute freeze over the deadline: at its end": (_frozen("12:30", "13:30"), 90),
    "two freezes: at the last end": (f"{_frozen('12:30', '13:30')}, {_frozen('13:00', '13:45')}", 105),
    "past the start of a window: at its end": (_frozen("12:30", "14:30"), 150),
    "another freeze: at the deadline": (_frozen("12:30", "13:30", absolute=False), 45),
    "a freeze that ends before: at the deadline": (_frozen("12:10", "12:40"), 45),
    "a freeze that begins at the deadline: at its end": (_frozen("12:45", "13:00"), 60),
    "then an ordinary freeze, which the deadline overrules": (
        f"{_frozen('12:30', '14:00')}, {_frozen('14:00', '14:10', absolute=False)}",
        120,
    ),
}


@pytest.mark.parametrize(("calendar", "starts"), FORETOLD.values(), ids=FORETOLD)
def test_what_is_foretold_of_a_start_comes_true(calendar: str, starts: float) -> None:
    policy = builders.settings(f"{TWO}\nnotAllowed: [{calendar}]")
    told = event(**_at(60))
    one = judged(told, policy)

    assert f"starts at {to_text(NOW + minutes(starts))} at the earliest" in one.opening.words
    assert one.until == NOW + minutes(starts)
    moments = [NOW + minutes(5 * step) for step in range(40)]
    first = next(moment for moment in moments if judged(told, policy, now=moment).may_start)
    assert first == one.until


def test_a_freeze_without_end_over_the_deadline_foretells_no_start() -> None:
    policy = builders.settings(
        "windows: [{name: two, start: '14:00', end: '15:00', nodeSelector: {}}]\n"
        "notAllowed: [{name: stop, start: 2026-11-21T12:30, end: 2029-01-01, absolute: true}]"
    )
    one = judged(event(**_at(60)), policy)

    assert "which an absolute freeze covers without end" in one.opening.words
    assert one.until is not None


def test_the_deadline_is_the_platforms_time_less_the_lead_time() -> None:
    lead = builders.settings("events: {Reboot: {leadTime: 40m}}")

    assert judged(event(not_before=NOW), lead).deadline == NOW - minutes(40)
    assert judged(event(), lead).deadline is None


@pytest.mark.parametrize(
    ("kind", "status", "starts"),
    [
        (Kind.LIVE_MIGRATION, Status.SCHEDULED, True),
        (Kind.LIVE_MIGRATION, Status.STARTED, False),
        (Kind.FREEZE, Status.STARTED, False),
        (Kind.REBOOT, Status.STARTED, True),
        (Kind.REDEPLOY, Status.STARTED, True),
        (Kind.PREEMPT, Status.STARTED, True),
        (Kind.TERMINATE, Status.STARTED, True),
    ],
)
def test_only_a_pause_that_has_started_is_past_its_use(kind: Kind, status: Status, starts: bool) -> None:
    all_drain = builders.settings("events: {LiveMigration: {drain: true}, Freeze: {drain: true}}")
    one = judged(event(kind, status=status), all_drain)

    assert one.asks
    assert one.starts is starts


LONG = "events: {LiveMigration: {drain: true, minDuration: 10s}}"
WEB = "overrides: [{nodeSelector: {agentpool: web}, events: {Reboot: {drain: false}}}]"
USERS: dict[str, Any] = {"initiator": Initiator.USER}


def _pause(seconds: float | None) -> dict[str, Any]:
    return {"kind": Kind.LIVE_MIGRATION, "duration": timedelta(seconds=seconds) if seconds else None}


ASKS = {
    "a Reboot asks": ("", {}, True, "Reboot requires a drain"),
    "a Freeze does not": ("", {"kind": Kind.FREEZE}, False, "events.Freeze.drain is false"),
    "advice does not": ("", {"kind": Kind.REBALANCE}, False, "is ignored"),
    "unknown, with its text": ("", {"kind": Kind.UNKNOWN, "description": "?!"}, False, "'?!'"),
    "too short": (LONG, _pause(9), False, "9s is below minDuration"),
    "just long enough": (LONG, _pause(10), True, "requires"),
    "an unknown duration counts as long": (LONG, _pause(None), True, "requires"),
    "a user's own is reported": ("", USERS, False, "a user started this"),
    "or drained for": ("events: {userInitiated: Drain}", USERS, True, "requires"),
    "but a request asks by name": ("", {**USERS, "sources": ("imds", "request")}, True, "requires"),
    "a user's Terminate asks": ("", {**USERS, "kind": Kind.TERMINATE}, True, "requires"),
    "an override for its pool": (WEB, {}, False, "is ignored"),
}


@pytest.mark.parametrize(("text", "what", "asks", "because"), ASKS.values(), ids=ASKS)
def test_whether_an_event_asks_for_a_drain(text: str, what: dict[str, Any], asks: bool, because: str) -> None:
    one = judged(event(**what), builders.settings(text), on=builders.node(pool="web"))

    assert one.asks is asks
    assert because in one.because


@pytest.mark.parametrize(("later", "may_start"), [(16, False), (15, True)])
def test_a_freeze_is_drained_in_time_outside_of_windows(later: float, may_start: bool) -> None:
    chosen = builders.settings(f"{TWO}\nevents: {{Freeze: {{drain: true}}}}")

    assert judged(event(Kind.FREEZE, **_at(later)), chosen).may_start is may_start


@pytest.mark.parametrize(
    ("kind", "on_freeze", "asks"),
    [(Kind.LIVE_MIGRATION, True, False), (Kind.LIVE_MIGRATION, False, True), (Kind.REBOOT, True, True)],
)
def test_a_remediator_with_on_freeze_keeps_pauses_to_itself(kind: Kind, on_freeze: bool, asks: bool) -> None:
    one = judged(event(kind), builders.settings(LM), remediator=Remediator(True, on_freeze=on_freeze))

    assert one.asks is asks
    assert ("remediator" in one.because) is not asks


LEAVES = "coexist: {karpenter: {leave: [Preempt]}}"
KARPENTERS = {KARPENTER_LABEL: "np"}


@pytest.mark.parametrize(
    ("text", "labels", "asks"),
    [
        pytest.param("", KARPENTERS, True, id="it may not act on it"),
        pytest.param(LEAVES, KARPENTERS, False, id="the settings say so"),
        pytest.param(LEAVES, {}, True, id="not Karpenter's"),
        pytest.param("coexist: {karpenter: {leave: []}}", KARPENTERS, True, id="nothing is left to it"),
    ],
)
def test_what_is_left_to_karpenter(text: str, labels: dict[str, str], asks: bool) -> None:
    assert judged(event(Kind.PREEMPT), builders.settings(text), on=builders.node(labels=labels)).asks is asks


@pytest.mark.parametrize(
    ("text", "since", "asks", "until"),
    [
        pytest.param("{KernelDeadlock: {for: 5m}}", NOW - minutes(4), False, NOW + minutes(1), id="not yet"),
        pytest.param("{KernelDeadlock: {for: 5m}}", NOW - minutes(5), True, None, id="long enough"),
        pytest.param("{KernelDeadlock: {}}", None, True, None, id="at once"),
        pytest.param("{KernelDeadlock: {drain: false}}", None, False, None, id="only reported"),
        pytest.param("{OutOfDisk: {}}", None, False, None, id="named no longer"),
    ],
)
def test_a_condition_that_the_settings_name_asks_once_it_is_true_for_long_enough(
    text: str, since: datetime | None, asks: bool, until: datetime | None
) -> None:
    stuck = event(Kind.UNKNOWN, status=STARTED, condition="KernelDeadlock", since=since)
    one = judged(stuck, builders.settings(f"conditions: {text}"))

    assert (one.asks, one.until) == (asks, until)
    assert "KernelDeadlock" in one.because
    assert "can't be read" not in one.because


def test_a_condition_waits_for_its_window_though_it_has_started() -> None:
    stuck = event(Kind.UNKNOWN, status=STARTED, condition="KernelDeadlock")
    one = judged(stuck, builders.settings(f"conditions: {{KernelDeadlock: {{}}}}\n{TWO}"))

    assert not one.may_start
    assert one.until == NOW + minutes(120)


@pytest.mark.parametrize(
    ("text", "later", "may_start"),
    [
        pytest.param("", 5 * 24 * 60, False, id="days ahead"),
        pytest.param("", 3 * 60, False, id="hours ahead"),
        pytest.param(EARLY, 5 * 24 * 60, True, id="the settings say Early"),
        pytest.param(f"{TWO}\n{EARLY}", 5 * 24 * 60, False, id="it waits for a window"),
    ],
)
def test_a_drain_from_hardware_that_fails_starts_early_where_the_settings_say_so(
    text: str, later: float, may_start: bool
) -> None:
    announced = Signal(
        "a", Kind.REDEPLOY, Status.SCHEDULED, NOW + minutes(later), degraded=is_degraded(Kind.REDEPLOY, None)
    )
    (joined,) = join("a", [announced])

    assert judged(joined, builders.settings(text)).may_start is may_start
    assert judged(replace(joined, cause=Cause()), builders.settings(text)).may_start is may_start


@pytest.mark.parametrize("waits", [WaitForNotice.NEVER, WaitForNotice.ALWAYS])
def test_a_plan_that_is_offered_later_changes_at_its_offer(waits: WaitForNotice) -> None:
    offer = replace(OFFER, offer_start=NOW + DAY, waits=waits)
    planned = replace(event(Kind.REDEPLOY, sources=("arm",), not_before=START), plan=offer)
    one = judged(planned, ASKED_FOR)

    assert not one.asks
    assert one.until == NOW + DAY
