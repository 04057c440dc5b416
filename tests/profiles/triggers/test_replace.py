"""replace: by deletion, or by lowering a pool that was raised for it."""

from __future__ import annotations

import pytest

from reconciler.features.machines import aks, openshift
from reconciler.model.machine import Pool, Remove
from reconciler.model.record import Replacement
from reconciler.model.structs import replace
from reconciler.profiles.situation import Effects
from reconciler.profiles.triggers.platform import replace_machine
from tests.support import builders
from tests.support.builders import NOW, minutes
from tests.support.replacing import AKS_POOL, POOL, machine, to_be_replaced

BEFORE = Replacement(NOW - minutes(9), 4)


@pytest.mark.parametrize(
    ("pool", "provider", "asked", "lower"),
    [
        pytest.param(POOL, openshift.NAME, None, None, id="not raised"),
        pytest.param(replace(POOL, wanted=4), openshift.NAME, BEFORE, 3, id="raised"),
        pytest.param(POOL, openshift.NAME, BEFORE, None, id="raised in vain"),
        pytest.param(replace(POOL, wanted=5), openshift.NAME, BEFORE, None, id="raised by others, too"),
        pytest.param(replace(AKS_POOL, wanted=4), aks.NAME, BEFORE, None, id="lowered by the deletion"),
    ],
)
def test_how_a_machine_goes(pool: Pool, provider: str, asked: Replacement | None, lower: int | None) -> None:
    owner = machine(pool, provider=provider)
    situation = to_be_replaced(owner, asked=asked)
    effects = replace_machine(situation, Effects(situation.record))

    assert effects.machine == Remove("a", owner, lower)
    assert effects.record.replacement == Replacement(NOW, asked.wanted if asked else None, 1)


def test_a_second_attempt_says_so() -> None:
    situation = to_be_replaced(machine(), asked=Replacement(NOW - minutes(9), removals=1))
    effects = replace_machine(situation, Effects(situation.record))

    assert effects.record.replacement == Replacement(NOW, None, 2)
    assert "attempt 2" in effects.notices[0].message


def test_what_nothing_would_bring_back_is_left() -> None:
    before = Effects(builders.record())

    assert replace_machine(to_be_replaced(machine(None)), before) == before
