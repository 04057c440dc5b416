"""Whether we can end the maintenance of a node: by its machine."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.features.machines.replacing import ends
from reconciler.model.event import Kind
from reconciler.model.machine import Machine, MachineRef, Pool
from reconciler.model.record import Asked, CaseRecord, DrainRecord
from reconciler.model.values import replace
from reconciler.profiles.endings import Means, after_drain
from tests.support import builders
from tests.support.builders import NOW, event, node
from tests.support.cases import removed, surged

REPLACES = builders.settings("events: {Redeploy: {replace: true}}").policies({}).of_kind(Kind.REDEPLOY)
SOON = event(Kind.REDEPLOY, not_before=NOW + timedelta(days=3))
REF = MachineRef("a", "u", "OpenShift", "m")
POOL = Pool("MachineSet", "np", wanted=3, ready=3)


@pytest.mark.parametrize(
    ("machine", "asked", "because"),
    [
        (Machine(REF, pool=POOL), (), ""),
        (Machine(REF, pool=POOL), (removed(NOW, 4),), ""),
        (Machine(REF, pool=POOL), (removed(NOW, 5),), "still there after 5 requests"),
        (Machine(REF, pool=POOL, deleting=True), (removed(NOW, 5),), ""),
        (Machine(REF, pool=POOL), (surged(NOW, 4, 4),), ""),
        (Machine(REF, pool=POOL), (surged(NOW, 4, 5),), "does not have 4 machines after 5"),
        (Machine(REF, pool=POOL, stalls="a pod stays"), (), "its deletion would not end: a pod stays"),
        (Machine(REF, pool=Pool("agent pool", "np", lowered_by_deletion=True)), (), "no single count"),
    ],
)
def test_a_provider_that_did_not_do_it_is_not_waited_for(
    machine: Machine, asked: tuple[Asked, ...], because: str
) -> None:
    means = Means(ends=(ends,), machine=machine, record=CaseRecord(drain=DrainRecord(NOW), asked=asked))
    after = after_drain(SOON, REPLACES, node(), means, NOW)

    assert after.by_us is not bool(because)
    assert because in after.refused


def test_a_busy_pool_is_waited_for_once_the_node_is_drained_and_not_before() -> None:
    busy = Machine(REF, pool=Pool("agent pool", "np", wanted=3, busy="np is Upgrading"))
    means = Means(ends=(ends,), machine=busy)

    assert after_drain(SOON, REPLACES, node(), means, NOW).refused == "np is Upgrading"
    drained = replace(means, record=CaseRecord(drain=DrainRecord(NOW)))
    assert after_drain(SOON, REPLACES, node(), drained, NOW).by_us
