"""surgeDue: one machine more, once, where it is wanted and may be asked for."""

from __future__ import annotations

import pytest

from reconciler.features.machines import aks
from reconciler.model.machine import Machine
from reconciler.model.plan import Verdict
from reconciler.model.record import DrainRecord, Replacement, State
from reconciler.model.structs import replace
from reconciler.profiles.situation import Effects, Situation
from reconciler.profiles.triggers.platform import surge
from tests.support import builders
from tests.support.builders import NOW, ask, minutes, settings
from tests.support.replacing import AKS_POOL, POOL, REF, REPLACES, SURGES, machine, to_be_replaced

BEFORE = State.REQUIRED
AKS = machine(AKS_POOL, provider=aks.NAME)
LATE = NOW + minutes(15)
TRUSTING = settings("events: {Redeploy: {replace: true}}\nreplace: {aks: {count: TrustAutoscaler}}")


@pytest.mark.parametrize(
    ("situation", "due"),
    [
        pytest.param(to_be_replaced(machine(), chosen=SURGES, state=BEFORE), True, id="surge"),
        pytest.param(to_be_replaced(machine(), chosen=REPLACES, state=BEFORE), False, id="no surge"),
        pytest.param(to_be_replaced(AKS, chosen=SURGES, state=BEFORE), True, id="agent pool, surge"),
        pytest.param(to_be_replaced(AKS), True, id="agent pool, drained"),
        pytest.param(to_be_replaced(AKS, chosen=TRUSTING), False, id="its autoscaler is trusted"),
        pytest.param(to_be_replaced(machine()), False, id="a machine set brings one by itself"),
        pytest.param(
            to_be_replaced(AKS, held=builders.record(drain=DrainRecord(NOW))), False, id="not drained yet"
        ),
        pytest.param(to_be_replaced(machine(), chosen=settings(), state=BEFORE), False, id="not replaced"),
        pytest.param(
            to_be_replaced(machine(), chosen=SURGES, state=BEFORE, not_before=LATE),
            False,
            id="at the deadline",
        ),
        pytest.param(to_be_replaced(None, chosen=SURGES, state=BEFORE), False, id="nobody's"),
        pytest.param(to_be_replaced(machine(None), chosen=SURGES, state=BEFORE), False, id="no pool"),
        pytest.param(
            to_be_replaced(Machine(REF, problem="403"), chosen=SURGES, state=BEFORE), False, id="unreadable"
        ),
        pytest.param(
            to_be_replaced(machine(replace(POOL, scales=False)), chosen=SURGES, state=BEFORE),
            False,
            id="an autoscaler's",
        ),
        pytest.param(
            to_be_replaced(machine(replace(POOL, wanted=None)), chosen=SURGES, state=BEFORE),
            False,
            id="keeps no number",
        ),
        pytest.param(
            to_be_replaced(machine(replace(POOL, busy="busy")), chosen=SURGES, state=BEFORE), False, id="busy"
        ),
        pytest.param(
            to_be_replaced(machine(deleting=True), chosen=SURGES, state=BEFORE),
            False,
            id="already being deleted",
        ),
        pytest.param(
            to_be_replaced(machine(control_plane=True), chosen=SURGES, state=BEFORE),
            False,
            id="control plane",
        ),
        pytest.param(
            to_be_replaced(machine(), chosen=SURGES, state=BEFORE, before_us="b"), False, id="another first"
        ),
        pytest.param(
            to_be_replaced(AKS, asked=Replacement(NOW - minutes(9), 3, 1)), False, id="deleted already"
        ),
    ],
)
def test_when_a_pool_is_asked_for_one_more(situation: Situation, due: bool) -> None:
    answer = ask("surgeDue", situation)

    assert (answer.verdict is Verdict.PASSED) is due, answer.reason
    assert not answer.holds


def test_no_pool_is_asked_for_a_vm_that_two_nodes_claim() -> None:
    one = to_be_replaced(machine(), chosen=SURGES, state=BEFORE)

    assert ask("surgeDue", one).verdict is Verdict.PASSED
    assert ask("surgeDue", replace(one, twin="b")).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("ago", "shows", "due"), [(1, 3, False), (2, 3, True), (2, 4, False)], ids=["soon", "in vain", "raised"]
)
def test_what_was_asked_for_in_vain_is_asked_for_again(ago: float, shows: int, due: bool) -> None:
    asked = Replacement(NOW - minutes(ago), 4)
    owner = machine(replace(POOL, wanted=shows))
    answer = ask("surgeDue", to_be_replaced(owner, chosen=SURGES, state=BEFORE, asked=asked))

    assert (answer.verdict is Verdict.PASSED) is due


def test_a_pool_that_never_grows_is_asked_five_times_and_each_time_later() -> None:
    owner = machine(replace(POOL, wanted=3))
    gaps: list[float] = []
    asked: Replacement | None = None
    since = 0.0
    for minute in range(24 * 60):
        before = replace(asked, asked=NOW - minutes(minute - since)) if asked else None
        situation = to_be_replaced(owner, chosen=SURGES, state=BEFORE, asked=before)
        if ask("surgeDue", situation).verdict is Verdict.PASSED:
            asked = surge(situation, Effects(situation.record)).record.replacement
            gaps.append(minute - since)
            since = minute
    assert gaps == [0, 2, 4, 6, 8]
    assert asked is not None
    assert (asked.retries, asked.wanted) == (4, 4)
