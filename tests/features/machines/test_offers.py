"""Replacing a machine: when its pool gets one more, when it is deleted, and what its node waits for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

import pytest

from reconciler.features.machines.replacing import DELETION, NAME, ONE_MORE, PAUSE, Around
from reconciler.model.event import Kind
from reconciler.model.machine import AKS, OPENSHIFT, Machine, Pool, Remove, ScaleUp
from reconciler.model.plan import Verdict
from reconciler.model.record import Asked, CaseRecord, DrainRecord, State
from reconciler.model.values import replace
from reconciler.profiles.situation import Situation, Work
from reconciler.profiles.triggers import TRIGGERS
from reconciler.profiles.vocabulary import CheckResult, failed, passed, unknown
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import NOW, event, judged, minutes, record, settings
from tests.support.cases import AKS_POOL, POOL, REF, machine, removed, surged

# Answers that hold no node.
no = partial(failed, holds=False)


def at(later: float) -> datetime:
    """So many minutes from now."""
    return NOW + minutes(later)


REPLACES = settings("events: {Redeploy: {replace: true}}")
SURGES = settings("events: {Redeploy: {replace: true}}\nreplace: {surge: true}")
GOING = removed(at(-5))
BUSY = machine(replace(POOL, busy="np is busy"))
UNREADABLE = Machine(REF, problem="403")


def to_be_replaced(
    owner: Machine | None,
    *,
    chosen: Settings = REPLACES,
    asked: tuple[Asked, ...] = (),
    held: CaseRecord | None = None,
    state: State = State.IN_MAINTENANCE,
    not_before: datetime | None = None,
) -> Situation:
    """Node a with a Redeploy, drained unless `held` or `state` says something else."""
    drained = replace(held or builders.record(state), asked=asked)
    on = builders.node(unschedulable=state is State.IN_MAINTENANCE)
    reported = judged(event(Kind.REDEPLOY, not_before=not_before), chosen)
    seen = builders.situation(on, reported, chosen=chosen, held=drained)
    return replace(seen, record=replace(seen.record, state=state), machine=owner)


def replaced(owner: Machine | None, *asked: Asked) -> Situation:
    """A drained node of which this machine is known."""
    return to_be_replaced(owner, asked=asked)


STAYS = {
    "nobody's": (replaced(None), passed()),
    "not asked": (replaced(machine()), passed()),
    "deleted by others": (replaced(machine(deleting=True)), failed("is being deleted")),
    "deleted": (replaced(machine(deleting=True), GOING), failed("is being deleted")),
    "just asked": (replaced(machine(), removed(at(-1))), failed("", at(1))),
    "after the pause": (replaced(machine(), removed(NOW - PAUSE)), passed()),
    "busy": (replaced(BUSY, GOING), failed("np is busy")),
    "but did not happen": (replaced(machine(), GOING), passed()),
    "nobody to ask": (replaced(None, GOING), unknown("no known provider")),
    "unreadable": (replaced(UNREADABLE, GOING), unknown("403")),
}

OF_AKS = machine(AKS_POOL, provider=AKS)
SEVERAL_SIZES = replace(OF_AKS, pool=replace(AKS_POOL, wanted=None, scales=False))
AT_IT = record(drain=DrainRecord(NOW))


def requested(removals: int, *, ago: float) -> Situation:
    """A node whose machine was deleted so often in vain, the last time so many minutes ago."""
    return replaced(machine(), removed(at(-ago), removals))


DELETION_DUE = {
    "due": (replaced(machine()), passed("the node is drained, and MachineSet np creates a new machine")),
    "nobody's": (replaced(None), failed("the node does not name a machine provider")),
    "unreadable": (replaced(UNREADABLE), unknown("can't be replaced: 403")),
    "no pool": (replaced(machine(None)), failed("nothing would create")),
    "going": (replaced(machine(deleting=True)), failed("is being deleted")),
    "control plane": (replaced(machine(control_plane=True)), failed("never replaced")),
    "stalls": (replaced(replace(machine(), stalls="pod shop/db-0 stays")), failed("shop/db-0 stays")),
    "busy": (replaced(BUSY), failed("np is busy")),
    "two nodes have the VM": (
        replace(replaced(machine()), twin="b"),
        failed("it is not replaced: node b has the same providerID"),
    ),
    "agent pool of several sizes": (replaced(SEVERAL_SIZES), failed("has no single count")),
    "it has not the one more": (replaced(OF_AKS, surged(at(-5), 4)), failed("")),
    "it has the one more": (replaced(OF_AKS, surged(at(-5), 3)), passed()),
    "asked just now": (requested(1, ago=1.9), failed("", at(0.1))),
    "asked in vain": (requested(1, ago=2), passed()),
    "the fifth request": (requested(4, ago=60), passed()),
    "no sixth request": (requested(5, ago=60), failed("still there after 5 requests")),
    "not drained yet": (to_be_replaced(machine(), held=AT_IT), no("")),
    "not replaced": (to_be_replaced(machine(), chosen=settings()), no("")),
}


def surging(
    owner: Machine | None,
    *asked: Asked,
    date: float | None = None,
    before_us: str = "",
    chosen: Settings = SURGES,
) -> Situation:
    """A node before its drain, which wants one machine more."""
    seen = to_be_replaced(
        owner, chosen=chosen, state=State.REQUIRED, asked=asked, not_before=None if date is None else at(date)
    )
    return replace(seen, of_features={NAME: Around(before_us)})


RAISED = surged(at(-3), 4)
FOUR_WANTED = machine(replace(POOL, wanted=4))
ALL_READY = machine(replace(POOL, wanted=4, ready=4))
READINESS_UNKNOWN = machine(replace(POOL, wanted=4, ready=None))

READY = {
    "no surge": (surging(machine(), chosen=REPLACES), passed()),
    "Ready": (surging(ALL_READY, RAISED), passed("its replacement in MachineSet np is Ready")),
    "at the deadline": (surging(FOUR_WANTED, RAISED, date=15), passed("the deadline has come")),
    "nobody can": (surging(machine(None)), passed("no machine provider can")),
    "not Ready": (surging(FOUR_WANTED, RAISED), failed("have 4 machines Ready before the drain, and has 3")),
    "until the deadline": (surging(FOUR_WANTED, RAISED, date=60), failed("", at(45))),
    "not asked yet": (surging(machine()), failed("one more machine before the drain")),
    "another first": (surging(machine(), before_us="b"), failed("node b of MachineSet np")),
    "busy": (surging(BUSY), failed("np is busy")),
}


TRUSTING = settings("events: {Redeploy: {replace: true}}\nreplace: {aks: {count: TrustAutoscaler}}")
SURGE_DUE = {
    "surge": (surging(machine()), passed("gets one more machine")),
    "no surge": (surging(machine(), chosen=REPLACES), no("the provider creates the new machine by itself")),
    "agent pool, surge": (surging(OF_AKS), passed("agent pool np gets one more machine")),
    "its autoscaler is trusted": (
        to_be_replaced(OF_AKS, chosen=TRUSTING),
        no("creates the new machine by itself"),
    ),
    "a machine set brings one by itself": (replaced(machine()), no("creates the new machine by itself")),
    "not drained yet": (to_be_replaced(OF_AKS, held=AT_IT), no("the node is not drained yet")),
    "not replaced": (surging(machine(), chosen=settings()), no("no event replaces the machine")),
    "at the deadline": (surging(machine(), date=15), no("the deadline has come")),
    "nobody's": (surging(None), no("no machine provider can")),
    "no pool": (surging(machine(None)), no("no machine provider can")),
    "unreadable": (surging(UNREADABLE), no("no machine provider can")),
    "an autoscaler's": (surging(machine(replace(POOL, scales=False))), no("belongs to another tool")),
    "keeps no number": (surging(machine(replace(POOL, wanted=None))), no("belongs to another tool")),
    "busy": (surging(BUSY), no("np is busy")),
    "already being deleted": (surging(machine(deleting=True)), no("is already being deleted")),
    "control plane": (surging(machine(control_plane=True)), no("never replaced")),
    "another first": (surging(machine(), before_us="b"), no("node b of MachineSet np is replaced first")),
    "deleted already": (replaced(OF_AKS, surged(at(-9), 3), removed(at(-9))), no("is already being deleted")),
    "two nodes have the VM": (replace(surging(machine()), twin="b"), no("node b has the same providerID")),
    "asked just now": (surging(machine(), surged(at(-1), 4)), no("was scaled to 4 machines at")),
    "asked in vain": (surging(machine(), surged(at(-2), 4)), passed("gets one more machine")),
}


@pytest.mark.parametrize(
    ("question", "seen", "expected"),
    [
        pytest.param(question, *row, id=f"{name}: {case}")
        for name, question, rows in (
            ("one more is due", ONE_MORE.due, SURGE_DUE),
            ("one more is there", ONE_MORE.answered, READY),
            ("the deletion is due", DELETION.due, DELETION_DUE),
            ("the machine stays", DELETION.answered, STAYS),
        )
        for case, row in rows.items()
    ],
)
def test_answers(
    question: Callable[[Situation], CheckResult], seen: Situation, expected: CheckResult
) -> None:
    answer = question(seen)

    assert expected.reason in answer.reason
    assert (answer.verdict, answer.until) == (expected.verdict, expected.until)
    assert answer.holds == expected.holds or answer.verdict is Verdict.PASSED or question is ONE_MORE.due


def test_a_pool_that_never_grows_is_asked_five_times_and_each_time_later() -> None:
    gaps: list[float] = []
    asked: tuple[Asked, ...] = ()
    since = 0.0
    for minute in range(24 * 60):
        seen = surging(machine(), *(surged(at(since - minute), 4, each.attempts) for each in asked))
        if ONE_MORE.due(seen).verdict is Verdict.PASSED:
            effects = TRIGGERS["prepare"](replace(seen, offers=(ONE_MORE,)), Work(seen.node, seen.record))
            asked = effects.record.asked
            gaps.append(minute - since)
            since = minute
    assert gaps == [0, 2, 4, 6, 8]
    assert asked == (surged(NOW, 4, 5),)


def deletes(pool: Pool, *asked: Asked) -> tuple[int | None, str]:
    """To how many machines the pool is lowered with the deletion, and what the Event says."""
    owner = machine(pool, provider=AKS if pool.lowered_by_deletion else OPENSHIFT)
    request = DELETION.request(replaced(owner, *asked))
    assert request is not None
    assert isinstance(request.task, Remove)
    assert request.task == Remove("a", owner, request.task.lower)
    return request.task.lower, request.notice.message


FOUR = surged(at(-9), 4)


@pytest.mark.parametrize(
    ("pool", "asked", "lower"),
    [
        pytest.param(POOL, (), None, id="not raised"),
        pytest.param(replace(POOL, wanted=4), (FOUR,), 3, id="raised"),
        pytest.param(POOL, (FOUR,), None, id="raised in vain"),
        pytest.param(replace(POOL, wanted=5), (FOUR,), None, id="raised by others, too"),
        pytest.param(replace(AKS_POOL, wanted=4), (FOUR,), None, id="lowered by the deletion"),
    ],
)
def test_a_pool_that_was_raised_for_the_node_is_lowered_with_its_machine(
    pool: Pool, asked: tuple[Asked, ...], lower: int | None
) -> None:
    assert deletes(pool, *asked) == (lower, f"deletes its machine; {pool} creates a new one")


def test_each_further_attempt_to_delete_the_machine_is_named() -> None:
    assert deletes(POOL, removed(at(-9)))[1].endswith("creates a new one (attempt 2)")


def test_what_nothing_would_bring_back_is_not_asked_for() -> None:
    assert DELETION.request(replaced(machine(None))) is None
    assert ONE_MORE.request(replaced(machine(None))) is None


def test_a_pool_is_asked_for_one_more_machine() -> None:
    request = ONE_MORE.request(surging(machine()))

    assert request is not None
    assert (request.task, request.own) == (ScaleUp("a", machine(), 4), "4")
    assert request.notice.message.startswith("scales MachineSet np up to 4 machines")


@pytest.mark.parametrize(
    ("owner", "asked", "words"),
    [
        pytest.param(machine(), (), "", id="nothing was asked"),
        pytest.param(machine(), (FOUR,), "MachineSet np was scaled up to 4", id="raised"),
        pytest.param(None, (FOUR,), "its pool was scaled up to 4", id="by a pool unknown now"),
        pytest.param(machine(), (FOUR, removed(at(-5))), "", id="and its own deleted"),
    ],
)
def test_a_machine_that_is_one_too_many_is_reported(
    owner: Machine | None, asked: tuple[Asked, ...], words: str
) -> None:
    assert ONE_MORE.left is not None
    notice = ONE_MORE.left(replaced(owner, *asked))

    assert (notice is not None) is bool(words)
    assert notice is None or words in notice.message
