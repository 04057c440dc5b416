"""A node that will be missed gets a Warning Event: once for each reason, before the deadline."""

from __future__ import annotations

import pytest

from reconciler.errors import Forbidden, TooManyRequests
from reconciler.simulation.api import Call
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW, REQUEST, case_of, minutes, node
from tests.support.worlds import world_of

ONE = "budget: {maxUnavailable: 1}"


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


def test_it_is_sent_once_hours_ahead_with_what_would_help() -> None:
    history = two()
    for _ in range(3):
        history.until_still()
        history.wait(minutes(60))

    (event,) = history.cluster.events
    assert (event.node, event.notice.type) == ("b", "Warning")
    assert "maxUnavailable of 2 from 2026-11-21T17:45:00Z on would do" in event.notice.message


def test_when_the_reason_has_gone_nothing_is_left_of_it_and_another_one_is_sent() -> None:
    history = two()
    history.until_still()
    history.settings = builders.settings("budget: {maxUnavailable: 2}")
    history.until_still()
    assert case_of(history.cluster.nodes["b"]).facts.warned == ()

    history.settings = builders.settings("budget: {maxUnavailable: 2, perPool: 1}")
    for name in ("a", "b"):
        history.cluster.label(name, "agentpool", "np")
    history.until_still()
    assert warned(history) == ["b", "b"]
    assert "perPool in np" in history.cluster.events[-1].notice.message


def test_a_reason_that_goes_and_comes_back_is_sent_again() -> None:
    history = two()
    history.until_still()
    for text in ("budget: {maxUnavailable: 2}", ONE):
        history.wait(minutes(5))
        history.settings = builders.settings(text)
        history.until_still()

    assert warned(history) == ["b", "b"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_could_not_be_sent_is_sent_once_in_the_next_pass(moment: str) -> None:
    history = two()

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

    def refuse(call: Call) -> None:
        if call.what == "notify":
            raise Forbidden("no", status=403, needs="create events in default")

    history.api.before_write = refuse
    history.look()
    writes = history.api.writes
    history.wait(minutes(1))
    history.look()

    assert (warned(history), history.api.writes) == ([], writes)


def test_that_the_deadline_passes_is_no_new_reason() -> None:
    history = two('events: {Reboot: {outsideWindow: Never}}\nwindows: [{start: "22:00", end: "23:00"}]')
    history.until_still()
    while history.now < NOW + minutes(358):
        history.wait(minutes(4))
        history.until_still()

    assert warned(history) == ["a", "b"]


@pytest.mark.parametrize("mode", ["Observe", "Finish"])
def test_a_mode_that_starts_nothing_foretells_nothing(mode: str) -> None:
    history = two(mode=mode)
    history.until_still()

    assert warned(history) == []
