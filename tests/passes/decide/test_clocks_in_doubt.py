"""API servers whose clocks disagree: deadlines go by the fastest, windows and ends by the slowest."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.clocks import Disagreement
from reconciler.model.event import Kind, MaintenanceEvent
from reconciler.model.outcome import Outcome
from reconciler.model.plan import JudgedEvent, Plan
from reconciler.model.record import State
from reconciler.model.snapshot import Remediator
from reconciler.profiles.endings import Means
from reconciler.profiles.judging import judge
from reconciler.report.people import alarms
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW, REQUEST, event, minutes, node, plan_of
from tests.support.searching import examples
from tests.support.worlds import carry_on, look, world_of

# NOW is a Saturday, 12:00 UTC.
WINDOW = "windows: [{days: [sat], start: '12:30', end: '13:30'}]\nevents: {Reboot: {ahead: 10h}}"
NEVER = "windows: [{days: [mon], start: '02:00', end: '03:00'}]"


class Doubtful(History):
    """Passes go by the clock of the process, which may be ahead of the right one or behind it."""

    def look(self) -> tuple[Plan, tuple[Outcome, ...]]:
        done = look(self.world, self.settings, self.world.ours.now())
        carry_on(self.world)
        return done


def history(text: str, after: float) -> History:
    """Node a has a reboot in so many minutes by the right clock; its deadline is 15 minutes before."""
    asked = f'{{"kind":"Reboot","notBefore":"{NOW + minutes(after):%Y-%m-%dT%H:%M:%SZ}"}}'
    return Doubtful(world_of([node("a", annotations={REQUEST: asked})]), builders.settings(text))


def differ(history: History, *, pass_is_ahead: float) -> None:
    """The clock of the pass is so many minutes ahead of the right one, which another API server has."""
    history.world.skew(minutes(pass_is_ahead))


def judged(event: MaintenanceEvent, text: str, spread: float) -> JudgedEvent:
    """What an event means on node a while the clocks differ by so many minutes."""
    means = Means(spread=minutes(spread))
    return judge(event, node("a"), builders.settings(text), Remediator(), NOW, means)


def begun_at(history: History) -> datetime:
    """When the maintenance of node a begins, by the right clock, looked at each minute."""
    for _ in range(600):
        history.until_still()
        if history.cluster.nodes["a"].unschedulable:
            return history.world.now
        history.world.advance(minutes(1))
    raise AssertionError("it never begins")


@pytest.mark.parametrize("ahead", [-20, -4, 4, 20])
def test_a_deadline_is_kept_and_the_start_is_early_by_the_disagreement_at_most(ahead: float) -> None:
    """The program can't know which clock is right, so it drains while both say that it is not too late."""
    scene = history(NEVER, 120)
    differ(scene, pass_is_ahead=ahead)
    began = begun_at(scene)

    assert NOW + minutes(105 - abs(ahead)) <= began <= NOW + minutes(105)


@pytest.mark.parametrize("ahead", [-20, -4, 4, 20])
def test_a_window_opens_by_the_slowest_clock_and_ends_by_the_fastest(ahead: float) -> None:
    scene = history(WINDOW, 300)
    differ(scene, pass_is_ahead=ahead)
    began = begun_at(scene)

    assert NOW + minutes(30) <= began <= NOW + minutes(30 + abs(ahead) + 1)
    closing = history(WINDOW, 300)
    closing.world.advance(minutes(90 - ahead / 2))
    differ(closing, pass_is_ahead=ahead)
    closing.until_still()
    # By one of the clocks the window has ended; which one is right the program does not know.
    assert not closing.cluster.nodes["a"].unschedulable


@settings(max_examples=examples(60))
@given(st.integers(-40, 40), st.integers(0, 30), st.integers(20, 200))
def test_with_any_disagreement_no_start_is_outside_a_window_but_at_a_deadline_and_no_end_is_early(
    ahead: int, comes: int, after: int
) -> None:
    """The clocks begin to disagree at some moment, and agree again after the event is gone."""
    scene = history(WINDOW, after)
    while scene.world.now < NOW + minutes(after):
        if scene.world.now >= NOW + minutes(comes):
            differ(scene, pass_is_ahead=ahead)
        scene.until_still()
        if scene.cluster.nodes["a"].unschedulable:
            break
        scene.world.advance(minutes(1))
    began, deadline = scene.world.now, NOW + minutes(after - 15)
    in_window = NOW + minutes(30) <= began < NOW + minutes(90)
    assert began < NOW + minutes(max(after - 14, 1))
    assert in_window or began >= min(deadline, NOW + minutes(after)) - abs(minutes(ahead)) or after <= 15
    scene.cluster.annotate("a", REQUEST, None)
    scene.until_still()
    gone = scene.world.now
    while scene.cluster.nodes["a"].unschedulable:
        assert scene.world.now <= gone + minutes(200)
        scene.world.advance(minutes(1))
        scene.until_still()
    assert scene.world.now >= gone + scene.settings.uncordon.settle


def test_a_drain_has_its_whole_time_while_the_clock_of_the_process_is_ahead_by_more() -> None:
    """Its start is recorded by the slowest clock: by that of the process, its time was over at once."""
    scene = history("events: {Reboot: {start: Early}}", 300)
    differ(scene, pass_is_ahead=60)
    scene.until_still()

    (plan,) = scene.look()[0].nodes
    assert plan.record is not None
    assert plan.record.drain is not None
    assert (plan.record.drain.attempt, plan.record.drain.done) == (1, scene.world.now)


def test_after_the_clocks_agree_again_no_settle_time_is_shortened() -> None:
    scene = history("events: {Reboot: {start: Early}}", 300)
    scene.until_still()
    differ(scene, pass_is_ahead=-30)
    scene.cluster.annotate("a", REQUEST, None)
    scene.until_still()
    gone = scene.world.now
    differ(scene, pass_is_ahead=0)
    while scene.cluster.nodes["a"].unschedulable:
        scene.until_still()
        scene.world.advance(timedelta(seconds=30))
    assert scene.world.now >= gone + scene.settings.uncordon.settle


@settings(max_examples=examples(20))
@given(st.sampled_from((-20, -4, 4, 20)), st.integers(0, 25))
def test_the_spacing_is_kept_whenever_the_clocks_differ_and_agree_again(ahead: int, agrees: int) -> None:
    """The last start is kept by the fastest clock: by the slowest, the next one came too early."""
    asked = f'{{"kind":"Reboot","notBefore":"{NOW + minutes(600):%Y-%m-%dT%H:%M:%SZ}"}}'
    nodes = [node(name, annotations={REQUEST: asked}) for name in "ab"]
    text = "budget: {maxUnavailable: 2, spacing: 30m}\nevents: {Reboot: {start: Early}}"
    scene = Doubtful(world_of(nodes), builders.settings(text))
    differ(scene, pass_is_ahead=ahead)
    scene.until_still()
    first = scene.world.now
    assert [scene.cluster.nodes[name].unschedulable for name in "ab"] == [True, False]
    while not scene.cluster.nodes["b"].unschedulable:
        assert scene.world.now <= first + minutes(120)
        scene.world.advance(minutes(2))
        if scene.world.now >= first + minutes(agrees):
            differ(scene, pass_is_ahead=0)
        scene.until_still()
    assert scene.world.now >= first + minutes(30)


@pytest.mark.parametrize("spread", [0, 20])
def test_a_drain_begins_so_long_before_its_deadline_by_the_slowest_clock(spread: int) -> None:
    """The deadline is earlier by the spread of the clocks, and the moment from which it may begin is not."""
    reboot = event(Kind.REBOOT, not_before=NOW + minutes(600))
    times = judged(reboot, "events: {Reboot: {ahead: 2h}}", spread).times

    assert times is not None
    assert (times.earliest, times.deadline) == (
        NOW + minutes(600 - 15 - 120),
        NOW + minutes(600 - 15 - spread),
    )


@pytest.mark.parametrize("spread", [0, 20])
def test_a_node_may_be_lost_by_the_fastest_clock_also_without_a_lead_time(spread: int) -> None:
    preempt = event(Kind.PREEMPT, not_before=NOW + minutes(60))

    assert judged(preempt, "mode: Enforce", spread).lost_from == NOW + minutes(60 - 15 - spread)


def test_it_is_said_with_its_numbers_to_who_looks() -> None:
    scene = history(NEVER, 1000)
    differ(scene, pass_is_ahead=4)
    plan = scene.until_still()

    words = (
        "the clocks of the API servers disagree by 240s: 1 of 2 answers of the last minute say "
        "2026-11-21T12:00:00Z, the others 2026-11-21T12:04:00Z. "
        "Deadlines go by the faster clock, windows and ends by the slower one"
    )
    assert plan.notes[0] == words
    assert [line for line in alarms(plan) if line.startswith("CLOCKS: ")] == [
        f"CLOCKS: {words}; correct the clocks of their machines, such as with `chronyc makestep`"
    ]
    assert plan_of(plan).after is State.REQUIRED


def test_a_server_that_must_be_wrong_changes_no_start_and_presses_nobody() -> None:
    few = Disagreement(timedelta(hours=1), 3, 40, counts=False)
    seen = builders.snapshot(node("a"))

    assert (few.spread, few.behind) == (timedelta(), timedelta())
    assert not [line for line in alarms(builders.planned(seen)) if line.startswith("CLOCKS: ")]
