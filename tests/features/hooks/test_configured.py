"""Hooks of the settings: when they are run, what they hold, and how that ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from reconciler.features.hooks.hook import IN_RECORD, HookAnswer, HookEnd, HookKey, HookRun, HookState
from reconciler.model.errors import ClusterError, Conflict, Unreachable
from reconciler.model.outcome import Result
from reconciler.model.ports import RequestProgress
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.clock import Actor
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import DRAIN_NOW, NOW, REQUEST, case_of, minutes, node, plan_of
from tests.support.worlds import look, world_of


class FakeHooks:
    """HookRunner that notes each order. A hook that was run goes on until `says` has another answer.

    `asked` are the names of the hooks that the last pass asked for.
    """

    def __init__(self) -> None:
        self.begun: list[HookRun] = []
        self.asked: list[str] = []
        self.says: dict[str, HookAnswer] = {}
        self.error: ClusterError | None = None

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """See the port."""
        self.asked = [key.id.name for key in keys]
        begun = {run.key for run in self.begun}
        runs, absent = HookAnswer(HookState.RUNNING, "it runs"), HookAnswer(HookState.ABSENT)
        return {key: self.says.get(key.id.name, runs) if key in begun else absent for key in keys}

    def run(self, run: HookRun) -> None:
        """See the port."""
        if self.error is not None:
            raise self.error
        self.begun.append(run)

    def progress(self) -> RequestProgress:
        """See the port."""
        return RequestProgress()


SPEC = "{spec: {template: {spec: {containers: [{name: a, image: b}]}}}}"
DONE = HookAnswer(HookState.DONE)
FAILED = HookAnswer(HookState.FAILED, "Job x has failed: BackoffLimitExceeded")


def history(step: str = "preDrain", extra: str = "", *names: str) -> tuple[History, FakeHooks]:
    hooks = ", ".join(f"{{name: {name}{extra}, job: {SPEC}}}" for name in names or ("sync",))
    text = f"uncordon: {{settle: 0s}}\nhooks: {{{step}: [{hooks}]}}"
    nodes = [node(annotations={REQUEST: DRAIN_NOW}, labels={"disk": "local"}), node("b")]
    made = History(world_of(nodes, [builders.pod("web", "a")]), builders.settings(text))
    runner = FakeHooks()
    made.world.clients["hooks"] = runner
    return made, runner


def reasons(going: History) -> dict[str, str]:
    plan, _ = going.look()
    return {one.code: one.reason for one in plan_of(plan).holds}


def evictions(going: History) -> int:
    return len(going.world.log.of(Actor.US, "evict"))


def test_a_hook_is_run_once_with_the_cordon_and_holds_the_drain_until_it_is_done() -> None:
    going, runner = history()
    for _ in range(3):
        going.look()
        going.wait(minutes(1))
        going.world.restart()
    (run,) = runner.begun
    assert (run.key.node, run.key.since, run.until, run.event) == ("a", NOW, NOW + minutes(10), "Reboot")
    assert reasons(going)["preDrainHooksDone"] == (
        "hook pre-drain.sync (it runs) holds the drain, until 2026-11-21T12:10:00Z at most"
    )
    assert evictions(going) == 0
    runner.says["sync"] = DONE
    going.look()

    assert evictions(going) == 1
    assert [one.end for one in IN_RECORD.of(case_of(going.cluster.nodes["a"]))] == [HookEnd.DONE]
    assert [one.notice.reason for one in going.cluster.events if one.notice.reason == "HookTimedOut"] == []


def test_a_hook_that_has_ended_is_not_asked_for_again() -> None:
    going, runner = history("preDrain", "", "sync", "copy")
    going.look()
    runner.says["sync"] = DONE
    asked = []
    for _ in range(3):
        going.look()
        asked.append(sorted(runner.asked))

    assert asked == [["copy", "sync"], ["copy"], ["copy"]]


def test_a_run_that_a_killed_process_did_not_begin_is_begun_by_the_next_one() -> None:
    going, runner = history()

    def die(call: Call) -> None:
        if call.what == "patch_node":
            raise ProcessKilled

    going.api.after_write = die
    with pytest.raises(ProcessKilled):
        look(going.world, going.settings)
    assert runner.begun == []
    going.api.after_write = lambda _: None
    going.world.restart()
    going.wait(minutes(2))
    going.look()

    assert [run.key.since for run in runner.begun] == [NOW]


def test_a_failed_hook_holds_its_step_until_the_time_limit_and_says_why() -> None:
    going, runner = history()
    going.look()
    runner.says["sync"] = FAILED
    assert "BackoffLimitExceeded" in reasons(going)["preDrainHooksDone"]
    going.wait(minutes(10))
    going.until_still()

    assert evictions(going) == 1
    (event,) = [one.notice for one in going.cluster.events if one.notice.reason == "HookTimedOut"]
    assert "hook pre-drain.sync (Job x has failed: BackoffLimitExceeded) has held the drain" in event.message


def test_only_nodes_that_the_selector_selects_have_the_hook() -> None:
    going, runner = history("preDrain", ", nodeSelector: {disk: remote}")
    going.look()

    assert runner.begun == []
    assert evictions(going) == 1


def test_a_hook_that_the_settings_no_longer_name_holds_nothing() -> None:
    going, _ = history()
    going.look()
    going.settings = builders.settings()
    going.look()

    assert evictions(going) == 1


def test_a_post_drain_hook_is_run_when_the_node_is_drained() -> None:
    going, runner = history("postDrain")
    going.look()
    assert (evictions(going), runner.begun) == (1, [])
    going.wait(minutes(1))
    going.until_still()

    assert [run.key.since for run in runner.begun] == [NOW + minutes(1)]


def test_a_pre_uncordon_hook_is_run_when_nothing_else_holds_the_uncordon() -> None:
    going, runner = history("preUncordon")
    going.until_still()
    assert runner.begun == []
    going.cluster.annotate("a", REQUEST, None)
    going.until_still()
    assert (len(runner.begun), going.cluster.nodes["a"].unschedulable) == (1, True)
    runner.says["sync"] = DONE
    going.until_still()

    assert not going.cluster.nodes["a"].unschedulable


def test_a_hook_is_asked_again_after_the_time_that_its_answer_names() -> None:
    going, runner = history()
    going.look()
    runner.says["sync"] = HookAnswer(HookState.RUNNING, "it runs", timedelta(seconds=10))
    plan = going.until_still()
    (until,) = [one.until for one in plan_of(plan).holds if one.code == "preDrainHooksDone"]

    assert plan.next_change == NOW + timedelta(seconds=10)
    assert until == NOW + minutes(10)


def test_after_three_hooks_that_can_not_be_run_a_pass_tries_no_more() -> None:
    going, runner = history("preDrain", "", *"abcde")
    runner.error = Unreachable("no answer")
    _, outcomes = going.look()

    found = [one.result for one in outcomes if one.action == "run hook"]
    assert found == [Result.FAILED] * 3 + [Result.LATER] * 2


def test_a_process_without_hooks_says_so_and_the_time_limit_ends_the_wait() -> None:
    going, _ = history()
    going.world.clients["hooks"] = None
    _, outcomes = going.look()
    assert [one.detail for one in outcomes if one.action == "run hook"] == ["this process does not run hooks"]
    going.wait(minutes(10))
    going.look()

    assert evictions(going) == 1


def test_a_hook_of_a_node_that_could_not_be_cordoned_is_not_run() -> None:
    going, runner = history()

    def refuse(call: Call) -> None:
        if call.what == "patch_node":
            raise Conflict("changed")

    going.api.before_write = refuse
    going.look()

    assert runner.begun == []
