"""The exploration finds the rule that is removed, for hooks and for what people say."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from reconciler.drain.drainer import node_drain as drainer
from reconciler.features.workflows import decide, run, triggers
from reconciler.features.workflows.situation import Worked, WorkflowSituation
from reconciler.model.drains import WaitLimit
from reconciler.model.instructions import Instructions
from reconciler.model.moments import shifted
from reconciler.model.values import replace
from reconciler.passes import node_facts
from reconciler.profiles import hooks, instructed, situation
from tests.explore.choices import PLAIN
from tests.explore.exploring import broken_law
from tests.explore.history import History, Scene, Step

ACTING = ("mode: Enforce", "budget: {maxUnavailable: 1}")
PROFILES = (*ACTING, PLAIN)
REBOOT = Step("request", value="Reboot", then=5)


def played(*steps: Step, pods: tuple[str, ...] = (), settings: tuple[str, ...] = ()) -> History:
    return History(Scene(1, settings=(*ACTING, *settings), pods=pods), steps)


def nobody_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (node_facts, situation):
        monkeypatch.setattr(module, "instructions_of", lambda *_: Instructions())


def test_a_drain_that_begins_on_a_held_node_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = played(Step("hold"), REBOOT)
    assert broken_law(history) == ""
    nobody_says(monkeypatch)

    assert broken_law(history) == "people"


def test_a_drain_that_goes_on_after_hold_now_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # The pod under a budget is asked for again and again.
    asks = dataclasses.replace(REBOOT, then=1)
    history = played(
        Step("pod budget", value="0"), asks, Step("hold", value="now", then=10), pods=("budget",)
    )
    assert broken_law(history) == ""
    nobody_says(monkeypatch)
    monkeypatch.setattr(drainer, "stopping_hold", lambda *_: "")

    assert broken_law(history) == "people"


def test_a_drain_that_nobody_has_approved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = played(REBOOT, settings=("events: {Reboot: {approval: true}}",))
    assert broken_law(history) == ""
    monkeypatch.setattr(instructed, "_approval", lambda *_: None)

    assert broken_law(history) == "people"


def test_a_deferred_drain_that_begins_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = played(Step("defer", value="60"), REBOOT)
    assert broken_law(history) == ""
    monkeypatch.setattr(instructed, "_deferral", lambda *_: None)

    assert broken_law(history) == "people"


def test_a_hook_without_an_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = played(Step("hook", value="pre-drain.leader"), dataclasses.replace(REBOOT, then=30))
    assert broken_law(history) == ""
    monkeypatch.setattr(hooks, "_ends_at", lambda entry, _: shifted(entry.since, timedelta(days=1)))

    assert broken_law(history) == "17"


def test_an_eviction_while_a_hook_holds_the_drain_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = played(Step("hook", value="pre-drain.leader"), REBOOT)
    assert broken_law(history) == ""
    monkeypatch.setattr("reconciler.passes.decide.draining.drain_hold", lambda *_: None)

    assert broken_law(history) == "hooks"


def test_a_pod_that_asks_to_finish_and_holds_its_node_for_ever_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short = ("drain: {podsMayWait: 5m}",)
    asks = (Step("pod waits", value="wait-completed"), dataclasses.replace(REBOOT, then=60))
    history = played(*asks, pods=("tenant",), settings=short)
    assert broken_law(history) == ""
    monkeypatch.setattr(WaitLimit, "ends", lambda limit, _: shifted(limit.since, timedelta(days=1)))

    assert broken_law(history) == "17"


BOTH = History(
    Scene(1, settings=PROFILES),
    (Step("work", value="one"), Step("work", value="two", then=5), Step("work done", value="one", then=5)),
)


def test_a_node_in_maintenance_for_two_profiles_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_law(BOTH) == ""
    monkeypatch.setattr(run._Profile, "_full", lambda *_: False)

    assert broken_law(BOTH) == "19"


def test_a_node_that_one_profile_opens_for_all_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(
        Scene(2, settings=PROFILES),
        (
            # The other node takes the only place of `few`, so this one waits cordoned.
            Step("work", on=1, value="one", then=5),
            Step("work", value="one", then=5),
            Step("work", value="two", then=5),
            Step("work done", value="two", then=5),
        ),
    )
    assert broken_law(history) == ""
    undone = triggers.uncordoned

    def opens(situation: WorkflowSituation, before: Worked) -> Worked:
        work = undone(situation, before)
        return replace(work, node=replace(work.node, unschedulable=False))

    monkeypatch.setattr(triggers, "uncordoned", opens)

    assert broken_law(history) == "19"


def test_a_workflow_that_begins_on_a_held_node_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(Scene(1, settings=PROFILES), (Step("hold"), Step("work", value="two", then=5)))
    assert broken_law(history) == ""
    monkeypatch.setattr(decide, "_kept_from_starts", lambda *_: ())

    assert broken_law(history) == "people"


def test_a_pod_that_holds_the_drain_of_a_workflow_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(
        Scene(1, settings=(*PROFILES, "drain: {podsMayWait: 15m}"), pods=("tenant",)),
        (Step("pod waits", value="wait-completed"), Step("work", value="two", then=60)),
    )
    assert broken_law(history) == ""
    monkeypatch.setattr(WaitLimit, "ends", lambda limit, _: shifted(limit.since, timedelta(days=1)))

    assert broken_law(history) == "17"
