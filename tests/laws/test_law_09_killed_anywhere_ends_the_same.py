"""Law 9: killed between any two writes, the next pass ends in the same state, times and UIDs aside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.model.errors import Unreachable
from reconciler.model.node import MECHANIC_LABEL
from reconciler.model.plan import Notice
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.world import World
from tests.laws.histories import History, Step, people_steps, platform_steps, small_world, visible, waits
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import IMDS, NOW, REQUEST
from tests.support.searching import QUARTER, examples, kills
from tests.support.worlds import world_of

Happenings = list[tuple[Step, timedelta]]
Kill = tuple[int, str]


def _play(make: Callable[[], World], policy: Settings, steps: Happenings, kill: Kill | None) -> History:
    """Play a history; the process is killed once, at the write that `kill` names, and started again."""
    history = History(make(), policy)
    seen = 0
    dead = kill is None

    def at(moment: str) -> Callable[[Call], None]:
        def hook(write: Call) -> None:
            nonlocal seen, dead
            del write
            number, when = kill or (0, "")
            if moment == "before":
                seen += 1
            if not dead and seen == number and moment == when:
                dead = True
                raise ProcessKilled

        return hook

    history.api.before_write, history.api.after_write = at("before"), at("after")

    def survive(go_on: Callable[[], object]) -> None:
        try:
            go_on()
        except ProcessKilled:
            # The state in the process is gone with it; the next process finishes at once.
            history.world.restart()
            go_on()

    for happen, wait in steps:
        happen(history)
        # A killed run has one more pass, so both runs get as far as this moment allows.
        survive(history.look)
        survive(history.look)
        history.wait(wait)
    survive(lambda: history.until_still(most=20))
    return history


def _ends_the_same_wherever_it_is_killed(
    make: Callable[[], World], policy: Settings, steps: Happenings
) -> int:
    whole = _play(make, policy, steps, None)
    expected, count = visible(whole.world), whole.api.writes
    for number in kills(count):
        for when in ("before", "after"):
            killed = _play(make, policy, steps, (number, when))
            assert visible(killed.world) == expected, f"killed {when} write {number} of {count}"
    return count


def _warnings(history: History) -> Counter[tuple[str, str]]:
    """How often each node got each Warning Event about a fact."""
    return Counter((one.node, one.notice.reason) for one in history.cluster.events if one.notice.once)


def _nothing(history: History) -> None:
    del history


def _request(name: str, text: str | None) -> Step:
    return lambda history: history.cluster.annotate(name, REQUEST, text)


def _minutes(count: int, *first: Step) -> Happenings:
    minute = timedelta(minutes=1)
    return [*((step, minute) for step in first), *[(_nothing, minute)] * count]


def _three_cases() -> World:
    nodes = [
        builders.node("n0", zone="1", annotations={REQUEST: builders.DRAIN_NOW}),
        builders.node("n1", zone="1", annotations={REQUEST: '{"kind":"Preempt"}'}),
        builders.node("n2", zone="2", annotations={REQUEST: builders.DRAIN_NOW}, unschedulable=True),
        builders.node("n3", zone="2"),
    ]
    kept = builders.pod("cache", "n0", empty_dir=True)
    return world_of(nodes, [kept, *(builders.pod(f"web-{node.name}", node.name) for node in nodes)])


def _mechanics() -> World:
    labels = {MECHANIC_LABEL: "true"}
    busy = builders.node("n0", labels=labels, unschedulable=True, annotations={REQUEST: builders.DRAIN_NOW})
    done = builders.node("n1", labels=labels, unschedulable=True)
    return world_of([busy, done], [builders.pod("web", "n0")])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("make", "text", "steps"),
    [
        pytest.param(_three_cases, "budget: {maxUnavailable: 4}", _minutes(2), id="in mid-maintenance"),
        pytest.param(
            _three_cases,
            "budget: {maxUnavailable: 4}",
            _minutes(6, _nothing, *(_request(f"n{number}", None) for number in range(3))),
            id="begun and ended",
        ),
        pytest.param(
            _three_cases, "budget: {maxUnavailable: 4, spacing: 3m}", _minutes(9), id="with a ledger"
        ),
        pytest.param(
            _three_cases,
            "budget: {maxUnavailable: 2}",
            _minutes(6, _nothing, _request("n1", None), _request("n2", None)),
            id="one after the other",
        ),
        pytest.param(
            _mechanics, "adopt: [mechanic]", _minutes(6, _nothing, _request("n0", None)), id="taking over"
        ),
        pytest.param(
            _three_cases,
            "budget: {maxUnavailable: 4}",
            _minutes(
                4, _nothing, lambda history: history.cluster.cordon("n0", on=False), _request("n1", None)
            ),
            id="somebody's uncordon",
        ),
    ],
)
def test_killed_before_or_after_any_write_it_ends_as_if_nothing_had_been(
    make: Callable[[], World], text: str, steps: Happenings
) -> None:
    assert _ends_the_same_wherever_it_is_killed(make, builders.settings(text), steps) >= 5


KILLED = Hits()


@KILLED.at_least(15, QUARTER)
@settings(max_examples=examples(100, QUARTER))
@given(
    strategies.policies(),
    st.lists(st.tuples(st.one_of(platform_steps, people_steps), waits), min_size=3, max_size=10),
    st.integers(1, 12),
    st.sampled_from(("before", "after")),
)
def test_over_any_history_a_killed_process_makes_no_difference(
    policy: Settings, steps: Happenings, number: int, when: str
) -> None:
    # Spacing moves starts in time, which other steps then meet differently; it has its own case above.
    assume(policy.budget.spacing == timedelta())
    whole = _play(small_world, policy, steps, None)
    killed = _play(small_world, policy, steps, (number, when))
    KILLED.count(whole.api.writes >= number)

    assert visible(killed.world) == visible(whole.world)
    assert whole.now == killed.now >= NOW


REFUSED = Hits()


def _strike(minutes: int) -> Happenings:
    """An event that is announced so long before its date, and starts on it."""
    told = {"EventId": "S1", "EventType": "Reboot", "EventStatus": "Scheduled"}
    date = strategies.rfc1123(NOW + timedelta(minutes=minutes))

    def say(document: dict[str, str]) -> Step:
        vm = builders.vm_name(0)
        return lambda history: history.cluster.annotate("n0", IMDS, builders.published(document, vm=vm))

    begun = {**told, "EventStatus": "Started", "NotBefore": ""}
    return [
        (say({**told, "NotBefore": date}), timedelta(minutes=minutes)),
        (say(begun), timedelta(minutes=1)),
    ]


@REFUSED.at_least(100, QUARTER)
@settings(max_examples=examples(150, QUARTER))
@given(
    strategies.policies(budgets=("maxUnavailable: 0", "maxUnavailable: 1, exempt: []")),
    st.integers(0, 30).map(_strike),
    st.lists(st.tuples(st.one_of(platform_steps, people_steps), waits), max_size=8),
    st.integers(0, 5),
    st.sampled_from(("before", "after")),
)
def test_over_any_history_a_kubernetes_event_that_is_refused_once_comes_once(
    policy: Settings, strike: Happenings, steps: Happenings, which: int, when: str
) -> None:
    def play(refused: int) -> tuple[History, int]:
        """Play it with one of the Events refused, none for 0, and return how many were asked for."""
        seen = 0

        def refuse(call: Call) -> None:
            nonlocal seen
            if call.what == "notify" and isinstance(call.content, Notice) and call.content.once:
                seen += 1
                if seen == refused:
                    raise Unreachable("no answer in time")

        def begin(history: History) -> None:
            setattr(history.api, f"{when}_write", refuse)

        return _play(small_world, policy, [(begin, timedelta()), *strike, *steps], None), seen

    whole, asked = play(0)
    if not asked:
        return
    refused, _ = play(1 + which % asked)

    REFUSED.count()
    assert _warnings(refused) == _warnings(whole)
    assert visible(refused.world) == visible(whole.world)
