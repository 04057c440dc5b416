"""The checks that read what the settings say about events of the platform."""

from __future__ import annotations

import pytest

from reconciler.features.workflows.input import CheckInput
from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent, Verdict
from reconciler.model.structs import replace
from reconciler.settings.schema import Settings
from tests.features.workflows.checks.scene import ask, given
from tests.support import builders
from tests.support.builders import NOW, event, judged, minutes, node, situation

CLOSED = builders.settings('windows: [{name: night, start: "22:00", end: "05:00"}]')
FROZEN = builders.settings("notAllowed: [{name: sale, start: 2026-11-20, end: 2026-11-23}]")
PLATFORM_TYPES = ("scheduledEvent", "window", "notAllowed", "deadline", "budget")


def seen(
    *events: JudgedEvent,
    settings: Settings | None = None,
    silent: tuple[str, ...] = (),
    fleet: tuple[Node, ...] = (),
) -> CheckInput:
    """What a check reads about a node with these events."""
    platform = situation(None, *events, chosen=settings, fleet=fleet)
    return replace(given(), platform=platform, silent=silent)


@pytest.mark.parametrize("kind", PLATFORM_TYPES)
def test_without_the_profile_of_platform_events_the_answer_is_unknown(kind: str) -> None:
    assert ask(kind, given()).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("keys", "verdict"),
    [
        ({}, Verdict.PASSED),
        ({"kinds": ["Reboot"]}, Verdict.PASSED),
        ({"kinds": ["Preempt"]}, Verdict.FAILED),
        ({"kinds": ["Freeze"]}, Verdict.FAILED),
        ({"kinds": ["Freeze"], "drains": False}, Verdict.PASSED),
    ],
)
def test_an_event_that_counts_is_reported(keys: dict[str, object], verdict: Verdict) -> None:
    scene = seen(judged(event(Kind.REBOOT)), judged(event(Kind.FREEZE)))

    assert ask("scheduledEvent", scene, **keys).verdict is verdict


def test_a_source_that_cannot_be_read_may_hide_an_event() -> None:
    scene = seen(silent=("imds can't be read",))

    assert ask("scheduledEvent", scene).verdict is Verdict.UNKNOWN
    assert ask("deadline", scene).verdict is Verdict.UNKNOWN
    assert ask("scheduledEvent", seen()).verdict is Verdict.FAILED
    assert ask("deadline", seen()).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("settings", "window", "not_allowed"),
    [
        (builders.settings(), Verdict.PASSED, Verdict.FAILED),
        (CLOSED, Verdict.FAILED, Verdict.FAILED),
        (FROZEN, Verdict.FAILED, Verdict.PASSED),
    ],
)
def test_windows_and_freezes_of_the_settings(
    settings: Settings, window: Verdict, not_allowed: Verdict
) -> None:
    scene = seen(settings=settings)

    assert ask("window", scene).verdict is window
    assert ask("notAllowed", scene).verdict is not_allowed


def test_they_say_when_they_change() -> None:
    assert ask("window", seen(settings=CLOSED)).until == NOW + minutes(600)
    assert ask("notAllowed", seen(settings=FROZEN)).until == NOW + minutes(36 * 60)


def test_the_deadline_is_the_first_one_of_the_events() -> None:
    soon, later = (judged(event(Kind.REBOOT, not_before=NOW + minutes(wait))) for wait in (45, 90))
    assert soon.deadline == NOW + minutes(30)
    scene = seen(later, soon)

    waits = ask("deadline", scene, within="10m")

    assert (waits.verdict, waits.until) == (Verdict.FAILED, NOW + minutes(20))
    assert ask("deadline", scene, within="30m").verdict is Verdict.PASSED


def test_the_budget_has_a_place() -> None:
    full = seen(fleet=(node("a"), node("b", unschedulable=True)))

    refused = ask("budget", full)

    assert ask("budget", seen()).verdict is Verdict.PASSED
    assert refused.verdict is Verdict.FAILED
    assert refused.reason == "maxUnavailable is 1, held by b (cordoned by others)"


def test_a_node_that_is_lost_anyway_waits_for_no_place() -> None:
    lost = judged(event(Kind.PREEMPT, not_before=NOW))
    full = seen(lost, fleet=(node("a"), node("b", unschedulable=True)))

    assert ask("budget", full).verdict is Verdict.PASSED
