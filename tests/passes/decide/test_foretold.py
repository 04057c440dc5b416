"""A node that will be missed gets a Warning Event: once for each reason that lasts, before the deadline."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.errors import Forbidden, TooManyRequests
from reconciler.passes.decide.facts import WARNED_AFTER
from reconciler.simulation.api import Call
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW, REQUEST, case_of, minutes, node
from tests.support.worlds import world_of

ONE, WIDE = "budget: {maxUnavailable: 1}", "budget: {maxUnavailable: 2}"


def due(after: float) -> str:
    """A request for a reboot in so many minutes."""
    return f'{{"kind":"Reboot","notBefore":"{NOW + minutes(after):%Y-%m-%dT%H:%M:%SZ}"}}'


def two(text: str = ONE, *, mode: str = "Enforce") -> History:
    """Two nodes that are due at once, in six hours."""
    nodes = [node(name, annotations={REQUEST: due(360)}) for name in ("a", "b")]
    return History(world_of(nodes), builders.settings(text, mode=mode))


def warned(history: History) -> list[str]:
    """The nodes with such an Event, in order."""
    found = [one for one in history.cluster.events if one.notice.reason == "MaintenanceWillBeMissed"]
    return [one.node for one in found]


def after_a_while(history: History) -> None:
    """Run passes until nothing is written, now and when a forecast has held for long enough."""
    history.until_still()
    history.wait(WARNED_AFTER)
    history.until_still()


def test_it_is_sent_once_hours_ahead_with_what_would_help() -> None:
    history = two()
    for _ in range(3):
        history.until_still()
        history.wait(minutes(60))

    (event,) = history.cluster.events
    assert (event.node, event.notice.type) == ("b", "Warning")
    assert "maxUnavailable of 2 from 2026-11-21T17:45:00Z on would do" in event.notice.message


def test_another_reason_is_sent_at_once() -> None:
    history = two("budget: {maxUnavailable: 2, perPool: 1}")
    after_a_while(history)
    assert warned(history) == []

    history.settings = builders.settings(ONE)
    after_a_while(history)
    history.settings = builders.settings("budget: {maxUnavailable: 2, perPool: 1}")
    for name in ("a", "b"):
        history.cluster.label(name, "agentpool", "np")
    history.until_still()
    assert warned(history) == ["b", "b"]
    assert "perPool in np" in history.cluster.events[-1].notice.message


def test_a_reason_that_goes_is_taken_back_and_sent_again_when_it_comes_back() -> None:
    history = two()
    after_a_while(history)
    for text in (WIDE, ONE):
        history.wait(minutes(5))
        history.settings = builders.settings(text)
        after_a_while(history)

    found = [(one.node, one.notice.reason) for one in history.cluster.events]
    assert found == [
        ("b", "MaintenanceWillBeMissed"),
        ("b", "MaintenanceNoLongerMissed"),
        ("b", "MaintenanceWillBeMissed"),
    ]
    back = history.cluster.events[1].notice
    assert back.type == "Normal"
    assert (
        back.message == "the node will be drained in time after all: its drain starts at 2026-11-21T16:45:00Z"
    )


def test_a_reason_that_lasts_for_seconds_is_not_sent_and_not_taken_back() -> None:
    history = two()
    history.until_still()
    history.wait(WARNED_AFTER - timedelta(seconds=1))
    history.until_still()
    history.settings = builders.settings(WIDE)
    after_a_while(history)

    assert history.cluster.events == []
    assert case_of(history.cluster.nodes["b"]).facts.will_be_missed is None


def test_the_plan_has_the_moment_at_which_people_are_warned() -> None:
    history = two()

    assert history.until_still().next_change == NOW + WARNED_AFTER


@pytest.mark.parametrize(("left", "after"), [(45, 10), (30, 10), (15, 5), (3, 1), (0, 0)])
def test_little_time_until_the_latest_start_shortens_the_wait(left: float, after: float) -> None:
    nodes = [node(name, annotations={REQUEST: due(left + 15)}) for name in ("a", "b")]
    # b has no place, because its drain would begin while a is out of service.
    history = History(world_of(nodes), builders.settings(ONE))
    history.until_still()
    if after:
        assert warned(history) == []
        history.wait(minutes(after) - timedelta.resolution)
        history.until_still()
        assert warned(history) == []
        history.wait(timedelta.resolution)
        history.until_still()

    assert warned(history) == ["b"]


def test_a_drain_that_begins_too_late_takes_nothing_back() -> None:
    history = two('events: {Reboot: {outsideWindow: Never}}\nwindows: [{start: "18:30", end: "23:00"}]')
    after_a_while(history)
    assert warned(history) == ["a", "b"]
    history.wait(minutes(390) - WARNED_AFTER)
    history.until_still()

    assert history.cluster.nodes["a"].unschedulable
    reasons = {one.notice.reason for one in history.cluster.events}
    assert "MaintenanceNoLongerMissed" not in reasons


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_could_not_be_sent_is_sent_once_in_the_next_pass(moment: str) -> None:
    history = two()
    history.until_still()
    history.wait(WARNED_AFTER)

    def refuse(call: Call) -> None:
        if call.what == "notify":
            raise TooManyRequests("slow down", status=429)

    setattr(history.api, f"{moment}_write", refuse)
    history.look()
    assert case_of(history.cluster.nodes["b"]).facts.warned == ()
    setattr(history.api, f"{moment}_write", None)
    history.wait(minutes(1))
    history.until_still()

    assert warned(history) == ["b"]
    assert case_of(history.cluster.nodes["b"]).facts.warned == ("MaintenanceWillBeMissed",)


def test_an_event_that_is_refused_for_good_is_not_asked_for_in_every_pass() -> None:
    history = two()
    history.until_still()
    history.wait(WARNED_AFTER)

    def refuse(call: Call) -> None:
        if call.what == "notify":
            raise Forbidden("no", status=403, needs="create events in default")

    history.api.before_write = refuse
    history.look()
    writes = history.api.writes
    history.wait(minutes(1))
    history.look()

    assert (warned(history), history.api.writes) == ([], writes)


@pytest.mark.heavy
def test_that_the_deadline_passes_is_no_new_reason() -> None:
    history = two('events: {Reboot: {outsideWindow: Never}}\nwindows: [{start: "22:00", end: "23:00"}]')
    history.until_still()
    while history.now < NOW + minutes(358):
        history.wait(minutes(4))
        history.until_still()

    assert warned(history) == ["a", "b"]


def test_mode_observe_foretells_nothing() -> None:
    history = two(mode="Observe")
    after_a_while(history)

    assert warned(history) == []


def test_mode_finish_foretells_that_it_starts_nothing() -> None:
    history = two(mode="Finish")
    after_a_while(history)

    assert warned(history) == ["a", "b"]
    assert "mode is Finish, so nothing new is started: mode: Enforce would do" in (
        history.cluster.events[0].notice.message
    )
