"""stagger: one node after another, by Leases."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.model.check_reads import LeaseRef, LeaseSeen, LeaseTake, ReadForChecks
from reconciler.model.plan import Verdict
from reconciler.settings.mistakes import Mistakes
from tests.features.workflows.checks.scene import ask, at, config, given
from tests.support.builders import NOW, node

KEYS = {"duration": "1m", "leaseName": "turn", "leaseNamespace": "ops"}
FIRST, SECOND = LeaseRef("ops", "turn-0"), LeaseRef("ops", "turn-1")


def held(since: datetime | None, holder: str = "b") -> LeaseSeen:
    """A Lease of a minute."""
    return LeaseSeen(holder, since, timedelta(minutes=1), "7", "uid")


def read(*leases: LeaseSeen | None) -> ReadForChecks:
    """These Leases, in order."""
    return ReadForChecks(leases=dict(zip((FIRST, SECOND), leases, strict=False)))


def ago(seconds: float) -> datetime:
    """So many seconds before now."""
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("lease", "verdict"),
    [
        pytest.param(None, Verdict.PASSED, id="nobody has created it"),
        pytest.param(held(None), Verdict.PASSED, id="nobody has taken it"),
        pytest.param(held(ago(61)), Verdict.PASSED, id="it has expired"),
        pytest.param(held(ago(60)), Verdict.FAILED, id="it expires now"),
        pytest.param(held(ago(1), "a"), Verdict.FAILED, id="this node has just taken it"),
    ],
)
def test_a_lease_is_free_after_its_duration(lease: LeaseSeen | None, verdict: Verdict) -> None:
    assert ask("stagger", given(read=read(lease)), **KEYS).verdict is verdict


def test_the_answer_names_the_holder_and_changes_when_the_first_lease_expires() -> None:
    scene = given(read=read(held(ago(10), "c"), held(ago(20))))

    answer = ask("stagger", scene, **KEYS, parallel=2)

    assert answer.reason == "node b has taken the Lease ops/turn-1, until 2026-11-21T12:00:40Z"
    assert answer.until is not None
    assert ask("stagger", at(scene, answer.until), **KEYS, parallel=2).verdict is Verdict.PASSED


def test_one_of_several_leases_is_enough_and_is_the_one_that_is_taken() -> None:
    scene = given(node=node("a"), read=read(held(ago(1)), held(ago(99))))
    settings = config("stagger", **KEYS, parallel=2)

    take = CHECK_TYPES["stagger"].takes(settings, scene)

    assert ask("stagger", scene, **KEYS, parallel=2).verdict is Verdict.PASSED
    assert take == LeaseTake(SECOND, "a", NOW, timedelta(minutes=1), held(ago(99)))


def test_a_second_node_of_the_same_pass_waits() -> None:
    settings = config("stagger", **KEYS)
    before = given(node=node("a"), read=read(None))
    take = CHECK_TYPES["stagger"].takes(settings, before)
    assert take is not None

    after = given(node=node("b"), read=before.read.taken(take))

    assert ask("stagger", after, **KEYS).verdict is Verdict.FAILED
    assert CHECK_TYPES["stagger"].takes(settings, after) is None


def test_a_lease_that_cannot_be_read_is_unknown_and_another_one_may_be_free() -> None:
    broken = {FIRST: "needs get leases.coordination.k8s.io in ops"}
    alone = ReadForChecks(unread_leases=broken)
    with_another = ReadForChecks(leases={SECOND: None}, unread_leases=broken)

    answer = ask("stagger", given(read=alone), **KEYS)

    assert answer.verdict is Verdict.UNKNOWN
    assert "needs get leases" in answer.reason
    assert ask("stagger", given(read=with_another), **KEYS, parallel=2).verdict is Verdict.PASSED


def test_it_needs_its_leases() -> None:
    needs = CHECK_TYPES["stagger"].needs(config("stagger", **KEYS, parallel=2))

    assert needs.leases == {FIRST, SECOND}


def test_a_number_of_leases_that_cannot_be_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="from 1 to 100") as caught:
        config("stagger", **KEYS, parallel=0)
    assert isinstance(caught.value.errors()[0]["ctx"]["error"], Mistakes)  # type: ignore[attr-defined]
