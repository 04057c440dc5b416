"""Each case, when it ends, is kept once with what is known of it, and at least once after a kill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from typing import Any

import pytest

from reconciler.model.case_outcome import CaseResult, InTime
from reconciler.model.ended_case import EndedCase
from reconciler.model.event import Kind
from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.record import CasePerson
from reconciler.model.selector import EVERYTHING
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.workloads import BudgetSpec
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import IMDS, NOW, REQUEST, minutes, node, pod, published
from tests.support.strategies import rfc1123
from tests.support.worlds import world_of

OPEN = "budget: {maxUnavailable: 100%}"
CLOSED = 'events: {Reboot: {outsideWindow: Never}}\nwindows: [{start: "22:00", end: "23:00"}]'
NOTHING = published(vm="vm")


@dataclass(slots=True)
class Kept:
    """A history in memory."""

    cases: list[EndedCase] = field(default_factory=list)

    def keep(self, cases: Sequence[EndedCase]) -> None:
        self.cases += cases

    @property
    def case(self) -> EndedCase:
        (only,) = self.cases
        return only


class Broken:
    """A history that breaks its promise, and raises."""

    def keep(self, cases: Sequence[EndedCase]) -> None:
        raise RuntimeError(f"{len(cases)} cases")


def history(
    text: str = OPEN,
    *,
    mode: str = "Enforce",
    pods: Iterable[Pod] = (pod("web-1"), pod("web-2")),
    on: Node | None = None,
) -> tuple[History, Kept]:
    scene = History(
        world_of([on or node("a", zone="1", pool="np")], pods), builders.settings(text, mode=mode)
    )
    kept = Kept()
    scene.world.ended = kept
    return scene, kept


def imds(status: str = "Scheduled", kind: Kind = Kind.REBOOT, *, ahead: float = 20, id_: str = "A1") -> str:
    date = rfc1123(NOW + minutes(ahead)) if status == "Scheduled" else ""
    event = {"EventId": id_, "EventType": kind, "EventStatus": status, "NotBefore": date}
    return published(event, vm="vm")


def play(scene: History, *steps: str | None, wait: float = 2, passes: int = 4) -> None:
    """Let the agent publish each step, and run passes after it."""
    for step in steps:
        scene.cluster.annotate("a", IMDS, step)
        for _ in range(passes):
            scene.look()
            scene.wait(minutes(wait))


@pytest.mark.parametrize("over", [True, False], ids=["drained", "missed"])
def test_a_case_is_kept_with_the_time_for_which_each_budget_held_it(over: bool) -> None:
    scene, kept = history()
    spec = BudgetSpec("shop", "ledger", EVERYTHING, max_unavailable=0)
    scene.cluster.add_budget(spec)
    play(scene, imds())
    if over:
        scene.cluster.drop_budget(spec.key)
        play(scene, imds())
    play(scene, imds("Started"), NOTHING, passes=8)
    (held,) = kept.case.held_by

    assert kept.case.outcome is (CaseResult.DRAINED if over else CaseResult.MISSED)
    assert held.budget == "shop/ledger"
    # The fourth pass comes 6 minutes after the first. Of the other one, the drain goes on to the end.
    assert held.seconds == (8 * 60 if over else 24 * 60)


def test_a_case_is_kept_with_all_of_its_facts() -> None:
    scene, kept = history()
    play(scene, *WHOLE)
    case = kept.case

    assert (case.place.node, case.place.uid, case.place.zone, case.place.pool) == ("a", "uid-a", "1", "np")
    assert (case.kind, case.sources) == ("Reboot", ("imds",))
    assert (case.outcome, case.outcome.in_time) == (CaseResult.DRAINED, InTime.YES)
    assert (case.pods_moved, case.pods_left) == (2, 0)
    assert "in time: drained at 2026-11-21T12:0" in case.why
    times = case.times
    assert (times.announced, times.case_start, times.planned, times.started) == (NOW, NOW, NOW, NOW)
    assert times.not_before == NOW + minutes(20)
    assert times.drained == NOW + minutes(2)
    assert times.gone == NOW + minutes(16)
    assert times.uncordoned == times.ended
    assert times.gone < times.ended <= NOW + minutes(24)


BY_ALICE = "held by alice@laptop since 2026-11-21T12:00:00Z"
WHOLE = (imds(), imds("Started"), NOTHING)
HELD = {f"{builders.PREFIX}/hold": hold_text(PersonHold(Word("alice@laptop", NOW, reason="disk copy")))}
HOLDER = CasePerson(
    f"{BY_ALICE}: disk copy", "held", "alice@laptop", verified=True, at=NOW, reason="disk copy"
)
MISSED: dict[str, object] = {"outcome": CaseResult.MISSED, "outcome.in_time": InTime.NO}
NEVER = dict.fromkeys(("times.started", "times.drained", "times.uncordoned", "pods_moved"))
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...], dict[str, object]]] = {
    "held": ({"on": node("a", annotations=HELD)}, WHOLE, {**MISSED, "people": (HOLDER,)}),
    "missed": ({"text": CLOSED}, WHOLE, {**MISSED, **NEVER, "pods_left": 2}),
    "a mode never let it begin": (
        {"mode": "Finish"},
        WHOLE[1:],
        {**MISSED, "times.announced": None, "times.case_start": NOW},
    ),
    "called off": (
        {},
        (imds(), NOTHING),
        {"outcome": CaseResult.CANCELLED, "outcome.in_time": InTime.UNKNOWN},
    ),
    "a foreign cordon": (
        {"on": node("a", unschedulable=True)},
        WHOLE,
        {"outcome": CaseResult.DRAINED, "times.uncordoned": None},
    ),
    "a kept pod": (
        {"pods": (pod("web"), pod("cache", empty_dir=True))},
        WHOLE,
        {"pods_moved": 1, "pods_left": 1},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_facts_of_a_case(name: str) -> None:
    made, steps, facts = CASES[name]
    scene, kept = history(**made)
    play(scene, *steps)

    assert {fact: attrgetter(fact)(kept.case) for fact in facts} == facts


def test_a_case_that_waits_was_announced_when_it_was_first_seen() -> None:
    scene, kept = history(
        f"{OPEN}\nevents: {{Reboot: {{start: Early}}}}\nwindows: [{{start: '13:00', end: '15:00'}}]"
    )
    play(scene, imds(ahead=300), wait=20)
    play(scene, imds("Started"), NOTHING, wait=5)

    times = kept.case.times
    assert (times.announced, times.case_start) == (NOW, NOW)
    assert times.started == NOW + minutes(60)


def test_a_drain_that_was_held_was_planned_for_an_earlier_start() -> None:
    scene, kept = history()
    play(scene, imds(ahead=180), wait=30, passes=3)
    scene.settings = builders.settings(CLOSED)
    play(scene, imds(ahead=180), wait=30, passes=2)
    scene.settings = builders.settings(OPEN)
    play(scene, imds(ahead=180), imds("Started"), NOTHING)

    times = kept.case.times
    # An hour before the latest start, which is 15 minutes before the date.
    assert times.planned == NOW + minutes(105)
    assert times.started == NOW + minutes(150)


def test_another_date_has_another_planned_start() -> None:
    scene, kept = history()
    play(scene, imds(ahead=180), imds(ahead=240), wait=30, passes=2)
    play(scene, imds(ahead=240), wait=30, passes=2)
    play(scene, imds("Started"), NOTHING)

    times = kept.case.times
    assert (times.not_before, times.announced) == (NOW + minutes(240), NOW)
    assert times.planned == NOW + minutes(165)
    assert times.started == NOW + minutes(180)


def test_after_somebodys_uncordon_a_case_goes_on_until_the_platform_has_acted_or_called_off() -> None:
    for end, outcome, words in (
        (imds("Started"), CaseResult.MISSED, "2 pods"),
        (NOTHING, CaseResult.CANCELLED, "the event did not start"),
    ):
        scene, kept = history()
        play(scene, imds(ahead=60), passes=2)
        scene.cluster.cordon("a", on=False)
        uncordoned = scene.now
        play(scene, imds(ahead=60), passes=1)
        for name in ("web-3", "web-4"):
            scene.cluster.add_pod(pod(name))
        play(scene, imds(ahead=60), passes=2)
        assert kept.cases == []

        play(scene, end, NOTHING)
        case = kept.case
        assert case.outcome is outcome
        assert words in case.why
        assert "someone uncordoned the node" in case.why
        assert case.times.uncordoned == uncordoned
        assert case.times.drained is not None
        assert case.times.drained < uncordoned


def test_a_request_that_is_drained_after_its_date_is_of_unknown_timeliness() -> None:
    scene, kept = history(pods=(pod("stuck", deleting_until=NOW),))
    scene.cluster.finalizers.add("uid-shop-stuck")
    date = (NOW + minutes(1)).isoformat()
    scene.cluster.annotate("a", REQUEST, f'{{"kind":"Reboot","notBefore":"{date}"}}')
    play(scene, NOTHING)
    scene.cluster.finalizers.clear()
    scene.cluster.drop_pod("uid-shop-stuck")
    scene.cluster.annotate("a", REQUEST, None)
    play(scene, NOTHING, wait=5)

    assert kept.case.sources == ("request",)
    assert kept.case.outcome.in_time is not InTime.YES


def test_the_most_disruptive_kind_names_the_case() -> None:
    scene, kept = history()
    scene.cluster.annotate("a", REQUEST, '{"kind":"Redeploy"}')
    play(scene, imds(), wait=1)
    scene.cluster.annotate("a", REQUEST, None)
    play(scene, imds("Started"), NOTHING)

    assert kept.case.kind == "Reboot"


def test_the_pods_of_a_drain_that_two_processes_carried_out_are_not_counted() -> None:
    scene, kept = history(pods=(pod("web"), pod("stuck", deleting_until=NOW)))
    scene.cluster.finalizers.add("uid-shop-stuck")
    play(scene, imds())
    scene.wait(minutes(1))
    scene.world.restart()
    play(scene, imds(), passes=1)
    scene.cluster.finalizers.clear()
    scene.cluster.drop_pod("uid-shop-stuck")
    play(scene, *WHOLE)

    assert kept.case.outcome is CaseResult.DRAINED
    assert kept.case.pods_moved is None


def test_the_pods_of_two_attempts_are_counted_together() -> None:
    scene, kept = history(
        f"{OPEN}\ndrain: {{timeout: 3m}}", pods=(pod("web"), pod("stuck", deleting_until=NOW))
    )
    scene.cluster.finalizers.add("uid-shop-stuck")
    # The second attempt begins with the third pass.
    play(scene, imds(), passes=3)
    scene.cluster.finalizers.clear()
    scene.cluster.drop_pod("uid-shop-stuck")
    play(scene, *WHOLE)

    assert kept.case.times.started == NOW
    assert kept.case.pods_moved == 2


def test_the_drain_of_an_earlier_case_moved_nothing_in_this_one() -> None:
    scene, kept = history()
    play(scene, *WHOLE)
    # The platform has started, so the pass reads the pods at once, and the drain ends as it begins.
    play(scene, imds("Started", id_="B2"), NOTHING)
    play(scene, imds(ahead=60, id_="C3"), imds("Started", id_="C3"), NOTHING)

    assert [case.pods_moved for case in kept.cases] == [2, 0, 0]
    assert len({case.identity for case in kept.cases}) == 3


def test_a_case_that_has_facts_before_it_opens_was_seen_earlier() -> None:
    scene, kept = history(mode="Finish")
    play(scene, imds(ahead=10), passes=1)
    # The case opens with this pass, and its drain begins with a later one.
    scene.settings = builders.settings(CLOSED)
    play(scene, imds(ahead=10), passes=1)
    scene.settings = builders.settings(OPEN)
    play(scene, imds(ahead=10), imds("Started"), NOTHING)

    assert kept.case.times.announced is None
    assert kept.case.times.case_start == NOW
    assert kept.case.times.started == NOW + minutes(4)


def test_the_pass_that_ends_a_drain_acts_and_names_no_hold() -> None:
    scene, _ = history(f"{OPEN}\nevents: {{Freeze: {{drain: true}}}}")
    reboot = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Scheduled", "NotBefore": ""}
    freeze = {"EventId": "F1", "EventType": "Freeze", "EventStatus": "Started", "NotBefore": ""}
    scene.cluster.annotate("a", IMDS, published(reboot, freeze, vm="vm"))
    scene.look()
    scene.wait(minutes(2))
    (plan,) = scene.look()[0].nodes

    assert plan.record is not None
    assert (plan.record.facts.moved, plan.holds) == (2, ())


def test_a_history_that_fails_harms_no_pass() -> None:
    scene, _ = history()
    scene.world.ended = Broken()
    play(scene, *WHOLE)

    assert not scene.cluster.nodes["a"].unschedulable
    assert builders.RECORD not in scene.cluster.nodes["a"].annotations


def played(number: int, when: str) -> tuple[History, Kept]:
    """Play a whole case, with a kill before or after a write (from 1); 0 is no kill."""
    scene, kept = history()
    died = number == 0

    def kill(call: Call) -> None:
        nonlocal died
        if not died and call.number == number:
            died = True
            raise ProcessKilled

    if when == "before":
        scene.api.before_write = kill
    else:
        scene.api.after_write = kill
    for step in (imds(), imds("Started"), NOTHING):
        scene.cluster.annotate("a", IMDS, step)
        for _ in range(4):
            try:
                scene.look()
            except ProcessKilled:
                scene.world.restart()
            scene.wait(timedelta(minutes=2))
    assert died
    return scene, kept


@pytest.mark.heavy
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_anywhere_a_case_is_kept_at_least_once_and_each_time_as_the_same(when: str) -> None:
    whole, expected = played(0, when)
    again = 0
    # Each of them, also in a quick run: one is the kill that is looked for.
    for number in range(1, whole.api.writes + 1):
        scene, kept = played(number, when)
        assert len({case.identity for case in kept.cases}) == 1, number
        assert kept.cases[-1].outcome is expected.case.outcome is CaseResult.DRAINED
        assert not scene.cluster.nodes["a"].unschedulable
        again += len(kept.cases) > 1

    # The kill between the line and the uncordon.
    assert again == (when == "before")
