"""What the demo says: made of a plan's values, the same news once."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from jobs.commands.demo import IGNORES, WAITS, Sentence, Story
from reconciler.model.drains import Blocker, DrainProgress, Phase
from reconciler.model.holds import DRAIN_BLOCKED
from reconciler.model.plan import DrainState, Hold, NodePlan
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.profiles.checks.platform import events_gone, node_ready
from reconciler.profiles.checks.starts import budget_left, window_open
from tests.support import builders
from tests.support.builders import NOW, event, judged, minutes

NIGHT = builders.settings('windows: [{name: night, start: "22:00", end: "05:00"}]')
ZONE = ZoneInfo("Europe/Berlin")
STORY = Story(NIGHT, ZONE, NOW.date())
REQUIRED = NodePlan("a", "", "", State.REQUIRED, State.REQUIRED)
HELD = NodePlan("a", "", "", State.IN_MAINTENANCE, State.IN_MAINTENANCE)
LATE = NOW + timedelta(hours=11)


def soon(in_minutes: float, now: datetime = NOW) -> NodePlan:
    """A node with a reboot so soon, judged at that moment."""
    reported = judged(event(not_before=NOW + minutes(in_minutes)), NIGHT, now=now)
    return replace(REQUIRED, events=(reported,), holds=(window_open.hold("a", "an own sentence of ours"),))


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        (NOW, "13:00"),
        (NOW + timedelta(seconds=7), "13:00:07"),
        (NOW + timedelta(hours=13), "02:00 on Sunday"),
    ],
)
def test_a_clock_names_the_day_where_it_is_another_one(moment: datetime, shown: str) -> None:
    assert STORY.clock(moment) == shown


def test_what_waits_for_a_window_is_derived_from_the_events_and_the_calendar() -> None:
    closed = "no maintenance window is open; "
    waits = f"{closed}waits for night, which opens at 23:00, before the deadline 23:45"
    starts = f"{closed}no window opens before the deadline, so it starts at 13:45 at the earliest"

    assert STORY.standing(soon(660), {}, NOW) == (Sentence(WAITS, (window_open.name,), waits),)
    assert STORY.standing(soon(60), {}, NOW) == (Sentence(WAITS, (window_open.name,), starts),)


def test_a_start_says_which_window_or_which_deadline_and_what_that_overrules() -> None:
    deadline = NOW + minutes(45)

    assert STORY.start(soon(60, deadline), {}, deadline) == (
        "the deadline 13:45 is reached, though no maintenance window is open"
    )
    assert STORY.start(soon(660, LATE), {}, LATE) == "window night is open until 06:00"


def test_one_sentence_says_why_a_node_is_still_cordoned_and_its_events_come_first() -> None:
    holds = (events_gone.hold("a", "still there: Reboot Scheduled"), node_ready.hold("a", "it is NotReady"))
    both = replace(HELD, holds=holds, events=(judged(event()),))
    unready = replace(HELD, holds=holds[1:])

    assert [one.text for one in STORY.standing(both, {}, NOW)] == [
        "stays cordoned: still there: Reboot Scheduled"
    ]
    assert [one.text for one in STORY.standing(unready, {}, NOW)] == ["stays cordoned: it is NotReady"]


def test_a_node_that_settles_says_since_when_and_until_when() -> None:
    hold = Hold("a", events_gone.name, "gone since ...", NOW + minutes(2))
    settling = replace(HELD, holds=(hold,), record=builders.record(quiet_since=NOW))

    assert STORY.standing(settling, {}, NOW)[0].text == (
        "stays cordoned: the events have been gone since 13:00; it settles until 13:02"
    )
    assert STORY.end(NOW) == "the events have been gone since 13:00"


def test_the_same_pods_and_budget_are_the_same_news_with_any_counts() -> None:
    def blocked(pod: str, healthy: int) -> NodePlan:
        reason = f"{pod}: waits for PDB p: needs 8 healthy, has {healthy}"
        progress = DrainProgress("a", "uid-a", Phase.RUNNING, blockers=(Blocker(pod, reason),))
        hold = DRAIN_BLOCKED.on("a", reason)
        return replace(HELD, holds=(hold,), draining=DrainState(progress=progress))

    keys = [[one.key for one in STORY.standing(blocked(*args), {}, NOW)] for args in (("p", 8), ("p", 7))]
    other = [one.key for one in STORY.standing(blocked("q", 8), {}, NOW)]
    full = [replace(REQUIRED, holds=(budget_left.hold("a", text),)) for text in ("1 of 1", "2 of 2")]

    assert keys[0] == keys[1] != other
    assert len({STORY.standing(one, {}, NOW)[0].key for one in full}) == 1


def test_an_event_that_requires_nothing_is_reported_while_the_node_is_in_service() -> None:
    quiet = judged(event(condition="Odd"))
    served = replace(REQUIRED, after=State.OPERATIONAL, events=(quiet,))

    assert [(one.who, one.text) for one in STORY.standing(served, {}, NOW)] == [(IGNORES, quiet.because)]
    assert STORY.standing(replace(HELD, events=(quiet,)), {}, NOW) == ()
