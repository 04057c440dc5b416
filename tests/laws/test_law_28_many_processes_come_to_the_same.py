"""Law 28: passes of many processes come to the same as passes of one, at most one pass later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.drains import MOST_RETURNS
from reconciler.model.errors import Rejected
from reconciler.model.plan import Plan
from reconciler.model.ports import RequestProgress
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from reconciler.simulation.workloads import Workload
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
from tests.support.builders import DRAIN_NOW, RECORD, REQUEST
from tests.support.searching import QUARTER, examples
from tests.support.worlds import carry_on

if TYPE_CHECKING:
    from reconciler.features.hooks.hook import HookAnswer, HookKey, HookRun

Happenings = list[tuple[Step, timedelta]]

SWEEP = timedelta(seconds=10)
"""How long a process goes on after its first pass."""

_DENIAL = 'admission webhook "guard.example.com" denied the request: not now'


@dataclass(slots=True)
class Service:
    """What a webhook of the settings asks: it is `ready`, or wants to be asked again after its `pause`.

    `rests` is until when it wants no request about a run (UTC), and `early` how many came before.
    """

    ready: bool = True
    pause: timedelta = timedelta(minutes=3)
    rests: dict[HookKey, datetime] = field(default_factory=dict)
    early: int = 0


class Requests:
    """The HookRunner of one process. It forgets what it was answered when the process ends."""

    def __init__(self, service: Service, history: History) -> None:
        self._service, self._history = service, history
        self._answers: dict[HookKey, tuple[bool, datetime]] = {}

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """See the port."""
        return {key: self._answer(key) for key in keys}

    def _answer(self, key: HookKey) -> HookAnswer:
        # Without the feature, nobody asks.
        from reconciler.features.hooks.hook import HookAnswer, HookState

        done, again = self._answers.get(key, (False, self._history.now))
        if done:
            return HookAnswer(HookState.DONE)
        left = again - self._history.now
        return HookAnswer(HookState.RUNNING if left > timedelta() else HookState.ABSENT, again=left)

    def run(self, run: HookRun) -> None:
        """See the port."""
        service, now = self._service, self._history.now
        service.early += now < service.rests.get(run.key, now)
        service.rests[run.key] = now + service.pause
        self._answers[run.key] = service.ready, now + service.pause

    def progress(self) -> RequestProgress:
        """See the port."""
        return RequestProgress()


@dataclass(slots=True)
class Hindered(History):
    """A history in which evictions of the pods, and from the nodes, in `denied` are denied."""

    denied: set[str] = field(default_factory=set)
    service: Service = field(default_factory=Service)

    def __post_init__(self) -> None:
        self.api.before_write = self._check
        self.world.clients["hooks"] = Requests(self.service, self)

    def restart(self) -> None:
        """End the process, and begin another one."""
        self.world.restart()
        self.world.clients["hooks"] = Requests(self.service, self)

    def _check(self, call: Call) -> None:
        if call.what == "evict" and not self.denied.isdisjoint((call.node, call.subject)):
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


def _busy(pause: int) -> Step:
    def happen(history: History) -> None:
        assert isinstance(history, Hindered)
        history.service.ready, history.service.pause = pause == 0, timedelta(minutes=max(pause, 2))

    return happen


hindrances: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda name, on: _attach(name, on=on), names, st.booleans()),
    st.builds(lambda name, on: _deny(name, on=on), names, st.booleans()),
    st.builds(_busy, st.sampled_from((0, 2, 7))),
)
histories: st.SearchStrategy[Happenings] = st.lists(
    st.tuples(st.one_of(platform_steps, people_steps, hindrances), waits), min_size=3, max_size=10
)


def _with_webhooks(policy: Settings, step: str) -> Settings:
    """Return the settings with a webhook that holds this step, none for an empty one."""
    hook = "[{name: sync, webhook: {url: 'https://storage.example.com/'}}]"
    hooks = builders.settings(f"hooks: {{timeout: 20m, {step}: {hook}}}") if step else policy
    return policy.model_copy(update={key: value for key, value in hooks if key == "hooks"})


policies = st.builds(
    _with_webhooks, strategies.policies(), st.sampled_from(("", "preDrain", "postDrain", "preUncordon"))
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
        history.restart()
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


def test_a_volume_holds_the_drain_of_another_process_and_not_for_ever() -> None:
    history = Hindered(small_world(), builders.settings("budget: {maxUnavailable: 1}"))
    history.cluster.annotate("n0", REQUEST, DRAIN_NOW)
    history.cluster.attached["n0"] = ("volume",)
    done = []
    for _ in range(8):
        history.restart()
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


def test_a_pod_that_comes_back_is_evicted_as_often_as_by_one_process_over_all_attempts() -> None:
    history = Hindered(small_world(), builders.settings("drain: {timeout: 5m}"))
    history.cluster.label("n0", "agentpool", "of-a")
    agents = Workload("shop", "agent", pools=("of-a",), node_name="n0")
    history.cluster.adopt(agents, replace(agents.pod(1000), node="n0", phase="Running", ready=True))
    history.cluster.annotate("n0", REQUEST, DRAIN_NOW)
    # Something else keeps the drain going.
    history.denied.update(pod.key for pod in history.cluster.pods_on("n0") if pod.name.startswith("web"))
    for _ in range(20):
        _sweep(history, alone=True)
        history.wait(timedelta(minutes=1))

    record = history.cluster.nodes["n0"].annotations[RECORD]
    assert '"attempt":1' not in record
    assert sum(one.pod.startswith("shop/agent-") for one in history.api.pod_requests) == 1 + MOST_RETURNS


@pytest.mark.parametrize("step", ["preDrain", "postDrain", "preUncordon"])
def test_a_webhook_is_asked_again_after_its_pause_whichever_process_it_told(step: str) -> None:
    history = Hindered(small_world(), _with_webhooks(builders.settings("uncordon: {settle: 0s}"), step))
    history.service.ready = False
    history.cluster.annotate("n0", REQUEST, DRAIN_NOW)
    for number in range(24):
        history.restart()
        history.look()
        history.look()
        if number == 2:
            history.cluster.annotate("n0", REQUEST, None)
        history.wait(timedelta(seconds=30))

    assert len(history.service.rests) == 1
    assert history.service.early == 0


def test_the_next_attempt_counts_since_when_a_pod_is_denied_from_its_own_begin() -> None:
    history = Hindered(small_world(), builders.settings("drain: {timeout: 5m, webhooksMayDeny: 30m}"))
    history.cluster.annotate("n0", REQUEST, DRAIN_NOW)
    history.denied.add("n0")
    for _ in range(7):
        _sweep(history, alone=True)
        history.wait(timedelta(minutes=1))

    drain = json.loads(history.cluster.nodes["n0"].annotations[RECORD])["drain"]
    assert drain["attempt"] == 2
    assert all(denied["at"] >= drain["since"] for denied in drain["seen"]["denied"])


SWEPT = Hits()


@SWEPT.at_least(30, QUARTER)
@settings(max_examples=examples(100, QUARTER))
@given(policies, histories)
def test_over_any_history_sweeps_come_to_what_one_process_comes_to(
    policy: Settings, steps: Happenings
) -> None:
    whole = _play(policy, steps, alone=False)
    swept = _play(policy, steps, alone=True)

    assert swept == whole
    SWEPT.count(any(told for _, told in whole))


PASSES = 4
"""Passes after each happening: a drain ends, the next pass sees it, and what follows comes after that."""


def _states(history: History, plan: Plan) -> dict[str, object]:
    """Return for each node what anybody sees of it, and what the plan says."""
    seen, told = visible(history.world), _told(plan)
    return {name: (seen[name], told.get(name)) for name in seen}


def _passes(policy: Settings, steps: Happenings, *, alone: bool) -> list[list[dict[str, object]]]:
    """Return the states after each pass, by happening. `alone`: each pass has a process of its own."""
    history, found = Hindered(small_world(), policy), []
    for happen, wait in steps:
        happen(history)
        passes = []
        for _ in range(PASSES):
            if alone:
                history.restart()
            plan, _ = history.look()
            passes.append(_states(history, plan))
            history.wait(timedelta(seconds=20))
        found.append(passes)
        history.wait(wait)
    return found


ALONE = Hits()


@ALONE.at_least(15)
@settings(max_examples=examples(100))
@given(policies, histories)
def test_over_any_history_a_process_for_each_pass_is_one_pass_later_at_most(
    policy: Settings, steps: Happenings
) -> None:
    whole = _passes(policy, steps, alone=False)
    alone = _passes(policy, steps, alone=True)

    for ours, theirs in zip(alone, whole, strict=True):
        for number in range(1, PASSES):
            for name, state in ours[number].items():
                assert state in (theirs[number].get(name), theirs[number - 1].get(name))
        assert ours[-1] == theirs[-1]
    ALONE.count(any(state != passes[0][name] for passes in whole for name, state in passes[-1].items()))
