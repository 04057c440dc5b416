"""NodeMaintenance objects that have ended: how long they are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.event import Kind
from reconciler.model.maintenance import Maintenance, MaintenanceWrite, Stage
from reconciler.publishing.node_maintenances import NodeMaintenances
from reconciler.publishing.publisher import Fleet, ObjectChanges
from tests.support import builders
from tests.support.builders import NOW, PREFIX

HISTORY = timedelta(days=7)
FLEET = Fleet((), {}, builders.settings("history: 7d"), NOW)
ENDED = Maintenance("a-0123456789", "a", "uid-a", Kind.REBOOT, Stage.DONE, finished=NOW - HISTORY)


@pytest.mark.parametrize("longer_ago", [timedelta(), timedelta(days=1)])
def test_an_ended_object_is_deleted_once_it_was_kept_for_its_time(longer_ago: timedelta) -> None:
    old = replace(ENDED, finished=NOW - HISTORY - longer_ago)

    found = NodeMaintenances().changes([old], FLEET)

    gone = MaintenanceWrite(ENDED.name, "a", PREFIX, None, exists=True)
    assert found == ObjectChanges(writes=(gone,), moments=())


def test_until_then_it_stays_and_the_plan_says_when_it_goes() -> None:
    young = replace(ENDED, finished=NOW - HISTORY + timedelta(seconds=1))

    found = NodeMaintenances().changes([young], FLEET)

    assert found == ObjectChanges(writes=(), moments=(NOW + timedelta(seconds=1),))
