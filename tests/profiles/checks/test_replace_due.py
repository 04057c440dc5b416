"""replaceDue: the node is drained, its provider creates a new machine, and no request is in progress."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.features.machines import aks
from reconciler.model.machine import Machine
from reconciler.model.plan import Verdict
from reconciler.model.record import DrainRecord, Replacement, State
from reconciler.model.structs import replace
from tests.support import builders
from tests.support.builders import NOW, ask, minutes, settings
from tests.support.replacing import AKS_POOL, POOL, REF, machine, to_be_replaced

AKS = machine(AKS_POOL, provider=aks.NAME)


def test_a_drained_node_with_a_machine_set_behind_it_is_due() -> None:
    answer = ask("replaceDue", to_be_replaced(machine()))

    assert (answer.verdict, answer.reason) == (
        Verdict.PASSED,
        "the node is drained, and MachineSet np creates a new machine",
    )


@pytest.mark.parametrize(
    ("owner", "words", "verdict"),
    [
        pytest.param(None, "the node does not name a machine provider", Verdict.FAILED, id="nobody's"),
        pytest.param(Machine(REF, problem="403"), "can't be replaced: 403", Verdict.UNKNOWN, id="unreadable"),
        pytest.param(machine(None), "nothing would create", Verdict.FAILED, id="no pool"),
        pytest.param(machine(deleting=True), "is being deleted", Verdict.FAILED, id="going"),
        pytest.param(machine(control_plane=True), "never replaced", Verdict.FAILED, id="control plane"),
        pytest.param(
            replace(machine(), stalls="pod shop/db-0 stays"), "shop/db-0 stays", Verdict.FAILED, id="stalls"
        ),
        pytest.param(machine(replace(POOL, busy="it is busy")), "it is busy", Verdict.FAILED, id="busy"),
        pytest.param(
            replace(AKS, pool=replace(AKS_POOL, wanted=None, scales=False)),
            "has no single count",
            Verdict.FAILED,
            id="agent pool of several sizes",
        ),
        pytest.param(AKS, "one more machine before this one is deleted", Verdict.FAILED, id="agent pool"),
    ],
)
def test_why_it_is_not_due_holds_the_node(owner: Machine | None, words: str, verdict: Verdict) -> None:
    answer = ask("replaceDue", to_be_replaced(owner))

    assert words in answer.reason
    assert (answer.verdict, answer.holds) == (verdict, True)


def test_where_another_node_has_the_same_vm_none_is_replaced_and_the_hold_names_it() -> None:
    answer = ask("replaceDue", replace(to_be_replaced(machine()), twin="b"))

    assert (answer.verdict, answer.holds) == (Verdict.FAILED, True)
    assert answer.reason == "it is not replaced: node b has the same providerID"


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        (Replacement(NOW - minutes(5), 4), Verdict.FAILED),
        (Replacement(NOW - minutes(5), 3), Verdict.PASSED),
    ],
)
def test_an_agent_pool_has_to_have_the_one_more(asked: Replacement, verdict: Verdict) -> None:
    assert ask("replaceDue", to_be_replaced(AKS, asked=asked)).verdict is verdict


@pytest.mark.parametrize(("ago", "due"), [(1.9, False), (2, True)])
def test_after_a_deletion_in_vain_the_next_is_due_later(ago: float, due: bool) -> None:
    answer = ask("replaceDue", to_be_replaced(machine(), asked=Replacement(NOW - minutes(ago), removals=1)))

    assert (answer.verdict is Verdict.PASSED) is due
    assert answer.until == (None if due else NOW + minutes(2 - ago))


def test_each_attempt_waits_longer() -> None:
    asked = Replacement(NOW - minutes(5), removals=3)
    answer = ask("replaceDue", to_be_replaced(machine(), asked=asked))

    assert answer.until == NOW + minutes(1)


def test_before_the_drain_is_done_and_without_replace_nothing_waits() -> None:
    going = builders.record(drain=DrainRecord(NOW))
    undrained = ask("replaceDue", to_be_replaced(machine(), held=going))
    unasked = ask("replaceDue", to_be_replaced(machine(), chosen=settings()))

    for answer in (undrained, unasked):
        assert (answer.verdict, answer.holds) == (Verdict.FAILED, False)
    assert to_be_replaced(machine()).state is State.IN_MAINTENANCE


@pytest.mark.parametrize("removals", [5, 6, 10**6])
def test_after_five_requests_the_node_is_held_without_another(removals: int) -> None:
    asked = Replacement(NOW - timedelta(days=300), removals=removals)
    answer = ask("replaceDue", to_be_replaced(machine(), asked=asked))

    assert (answer.verdict, answer.holds, answer.until) == (Verdict.FAILED, True, None)
    assert f"still there after {removals} requests" in answer.reason
    fourth = replace(asked, removals=4)
    assert ask("replaceDue", to_be_replaced(machine(), asked=fourth)).verdict is Verdict.PASSED
