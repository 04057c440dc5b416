"""Law 28: passes of many processes come to the same as passes of one, at most one pass later."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.errors import Rejected
from reconciler.model.plan import Plan
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from tests.laws.histories import (
    History,
    Step,
    names,
    people_steps,
    platform_steps,
    small_world,
    visible,
    waits,
)
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import DRAIN_NOW, REQUEST
from tests.support.searching import examples
from tests.support.worlds import carry_on

Happenings = list[tuple[Step, timedelta]]

SWEEP = timedelta(seconds=10)
"""How long a process goes on after its first pass."""

_DENIAL = 'admission webhook "guard.example.com" denied the request: not now'


@dataclass(slots=True)
class Hindered(History):
    """A history in which evictions from the nodes in `denied` are denied."""

    denied: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.api.before_write = self._check

    def _check(self, call: Call) -> None:
        if call.what == "evict" and call.node in self.denied:
            raise Rejected(_DENIAL)


def _attach(name: str, *, on: bool) -> Step:
    def happen(history: History) -> None:
        history.cluster.attached[name] = (f"volume of {name}",) if on else ()

    return happen


def _deny(name: str, *, on: bool) -> Step:
    def happen(history: History) -> None:
        assert isinstance(history, Hindered)
        (history.denied.add if on else history.denied.discard)(name)

    return happen


hindrances: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda name, on: _attach(name, on=on), names, st.booleans()),
    st.builds(lambda name, on: _deny(name, on=on), names, st.booleans()),
)
histories: st.SearchStrategy[Happenings] = st.lists(
    st.tuples(st.one_of(platform_steps, people_steps, hindrances), waits), min_size=3, max_size=10
)


def _told(plan: Plan) -> dict[str, object]:
    """What a plan says of each node that has a case: its state, what holds it, and which pods are left."""
    return {
        node.node: (
            node.after,
            sorted({hold.code for hold in node.holds}),
            sorted(
                (one.pod, one.leaving)
                for one in (node.draining.progress.blockers if node.draining.progress is not None else ())
            ),
        )
        for node in plan.nodes
        if node.record is not None
    }


def _sweep(history: Hindered, *, alone: bool) -> Plan:
    """Run passes at a moment and some seconds later, in one process, and perhaps end it then."""
    history.look()
    history.world.advance(SWEEP)
    # What began at the end of a sweep ends with the next one.
    for _ in range(3):
        plan, _ = history.look()
    if alone:
        history.world.restart()
    return plan


def _play(
    policy: Settings, steps: Happenings, *, alone: bool
) -> list[tuple[dict[str, object], dict[str, object]]]:
    history, seen = Hindered(small_world(), policy), []
    for happen, wait in steps:
        happen(history)
        _sweep(history, alone=alone)
        plan = _sweep(history, alone=alone)
        seen.append((visible(history.world), _told(plan)))
        history.wait(wait)
    return seen


SWEPT = Hits()


@SWEPT.at_least(30)
@settings(max_examples=examples(100))
@given(strategies.policies(), histories)
def test_over_any_history_sweeps_come_to_what_one_process_comes_to(
    policy: Settings, steps: Happenings
) -> None:
    whole = _play(policy, steps, alone=False)
    swept = _play(policy, steps, alone=True)

    assert swept == whole
    SWEPT.count(any(told for _, told in whole))


def _passes(
    policy: Settings, steps: Happenings, *, alone: bool
) -> list[tuple[dict[str, object], dict[str, object]]]:
    """Return what is so after each step; with `alone`, each pass has a process of its own."""
    history, seen = Hindered(small_world(), policy), []
    for happen, wait in steps:
        happen(history)
        # A drain that another process has ended is seen by the next pass, and what follows by the one after.
        for _ in range(4 if alone else 3):
            if alone:
                history.world.restart()
            plan, _ = history.look()
        seen.append((visible(history.world), _told(plan)))
        history.wait(wait)
    return seen


ALONE = Hits()


@ALONE.at_least(15)
@settings(max_examples=examples(100))
@given(strategies.policies(), histories)
def test_over_any_history_a_process_for_each_pass_comes_to_the_same(
    policy: Settings, steps: Happenings
) -> None:
    whole = _passes(policy, steps, alone=False)
    alone = _passes(policy, steps, alone=True)

    assert alone == whole
    ALONE.count(any(told for _, told in whole))


def test_a_volume_holds_the_drain_of_another_process_and_not_for_ever() -> None:
    history = Hindered(small_world(), builders.settings("budget: {maxUnavailable: 1}"))
    history.cluster.annotate("n0", REQUEST, DRAIN_NOW)
    history.cluster.attached["n0"] = ("volume",)
    done = []
    for _ in range(8):
        history.world.restart()
        plan, _ = history.look()
        carry_on(history.world)
        drain = next(node.record.drain for node in plan.nodes if node.node == "n0" and node.record)
        assert drain is not None
        done.append(drain.done is not None)
        history.wait(timedelta(seconds=20))

    assert not any(done[:4])
    assert done[-1]


def test_a_pod_counts_as_blocked_since_its_first_denial_whichever_process_saw_it() -> None:
    history = Hindered(small_world(), builders.settings("drain: {webhooksMayDeny: 10m}"))
    history.cluster.annotate("n0", REQUEST, DRAIN_NOW)
    history.denied.add("n0")
    leaving = []
    for _ in range(5):
        plan = _sweep(history, alone=True)
        progress = next(node.draining.progress for node in plan.nodes if node.node == "n0")
        assert progress is not None
        leaving += [one.leaving for one in progress.blockers]
        history.wait(timedelta(minutes=3))

    assert leaving == [True] * 4 + [False]
