"""Whether Azure can be asked to start an event early: by the agent's report, and the VMs that it names."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.event import Answer, Kind, Reading, Signal, Status
from reconciler.profiles.endings import Means, after_drain
from reconciler.sources.imds import scheduled_events as imds
from reconciler.sources.imds.feature import ends
from tests.support import builders
from tests.support.builders import NOW, event, node

ACKNOWLEDGES = (
    builders.settings("events: {Redeploy: {acknowledge: true}}").policies({}).of_kind(Kind.REDEPLOY)
)
SOON = event(Kind.REDEPLOY, not_before=NOW + timedelta(days=3), ids=("e-1",), sources=(imds.SOURCE,))


def _of_vms(*vms: str) -> tuple[Reading, ...]:
    signal = Signal(imds.SOURCE, Kind.REDEPLOY, Status.SCHEDULED, id="e-1", resources=vms)
    return (Reading(imds.SOURCE, Answer.EVENT, (signal,)),)


@pytest.mark.parametrize(
    ("readings", "because"),
    [
        (_of_vms("vm-a", "VM-b"), ""),
        (_of_vms("vm-a", "vm-elsewhere"), "VM vm-elsewhere is not a node of this cluster"),
        (_of_vms("vm-twice"), "VM vm-twice may be any of c, d"),
        (_of_vms(), "it does not say which VMs it is about"),
        ((), "the node agent does not report it"),
    ],
)
def test_an_event_is_acknowledged_only_if_azure_takes_it_and_all_of_its_vms_are_nodes(
    readings: tuple[Reading, ...], because: str
) -> None:
    vms = {"vm-a": ["a"], "vm-b": ["b"], "vm-twice": ["d", "c"]}
    means = Means(ends=(ends,), readings=readings, vms=lambda: vms)
    after = after_drain(SOON, ACKNOWLEDGES, node(), means, NOW)

    assert after.by_us is not bool(because)
    assert because in after.refused
