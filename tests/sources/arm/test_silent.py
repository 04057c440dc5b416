"""A list of ARM that fails, or misses a VM, is unknown: the node that it reported stays cordoned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from reconciler.model.machine import Scope
from reconciler.model.moments import to_text
from reconciler.model.polling import Listing
from reconciler.model.values import replace
from reconciler.sources.arm import source as arm
from reconciler.sources.arm.source import Planned
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW, SCALE_SET, minutes
from tests.support.worlds import world_of


@dataclass(slots=True)
class ListedVms:
    """Lists of scale sets, by their names; implements SourceClient.

    `statuses` has each VM's maintenanceRedeployStatus by instance id, an empty one for no maintenance.
    `problems` are the lists that are refused; with `patience` (seconds) what comes after one is not asked.
    """

    statuses: dict[str, dict[str, dict[str, object]]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    patience: float | None = None

    def ask(self, scopes: Sequence[Scope]) -> tuple[Listing[Scope, Planned], ...]:
        """Answer as ARM does at the moment."""
        listings: list[Listing[Scope, Planned]] = []
        refused = ""
        for scope in scopes:
            if refused and self.patience is not None:
                listings.append(Listing(scope, problem=refused, asked=False))
            elif refused := self.problems.get(scope.scale_set, ""):
                listings.append(Listing(scope, problem=refused, wait=self.patience))
            else:
                listings.append(arm.listing(scope, self._documents(scope)))
        return tuple(listings)

    def _documents(self, scope: Scope) -> list[dict[str, object]]:
        return [
            {"instanceId": number, "properties": {"instanceView": {"maintenanceRedeployStatus": status}}}
            for number, status in self.statuses.get(scope.scale_set, {}).items()
        ]


def _refused(listed: ListedVms) -> None:
    listed.problems[SCALE_SET] = "403 AuthorizationFailed"


def _vm_missing(listed: ListedVms) -> None:
    del listed.statuses[SCALE_SET]["0"]


def _status_garbled(listed: ListedVms) -> None:
    listed.statuses[SCALE_SET]["0"] = {"maintenanceWindowStartTime": "soon"}


def _throttled(listed: ListedVms) -> None:
    listed.patience = 6 * 3600


@pytest.mark.parametrize(
    "goes_silent",
    [
        pytest.param(_refused, id="its list is refused"),
        pytest.param(_vm_missing, id="its list misses the VM"),
        pytest.param(_status_garbled, id="the VM's status can't be parsed"),
        pytest.param(_throttled, id="it asks for patience with everything"),
    ],
)
def test_a_cloud_that_reported_the_event_and_is_silent_now_holds_the_uncordon(
    goes_silent: Callable[[ListedVms], None],
) -> None:
    history, listed = _planned_by_arm()
    goes_silent(listed)
    for time in (minutes(6), *[timedelta(hours=1)] * 5):
        history.wait(time)
        plan, _ = history.look()

    assert history.cluster.nodes["n0"].unschedulable
    assert "eventsGone" in builders.codes(builders.plan_of(plan, "n0"))


def test_when_a_cloud_no_longer_reports_the_event_the_node_is_uncordoned() -> None:
    history, listed = _planned_by_arm()
    listed.statuses[SCALE_SET]["0"] = {}
    for _ in range(5):
        history.wait(timedelta(hours=1))
        history.look()

    assert not history.cluster.nodes["n0"].unschedulable


def _planned_by_arm() -> tuple[History, ListedVms]:
    """A node that is drained for an event from ARM; another scale set is queried again soon."""
    nodes = [
        builders.on_vm(builders.node("n0", conditions=(builders.quiet(),)), 0),
        builders.on_vm(builders.node("n1", conditions=(builders.quiet(),)), 1),
    ]
    nodes[1] = replace(nodes[1], provider_id=nodes[1].provider_id.replace(SCALE_SET, "aks-a"))
    # What is silent after the window's end has not said that it is over.
    window: dict[str, object] = {
        "maintenanceWindowStartTime": to_text(NOW + timedelta(hours=1)),
        "maintenanceWindowEndTime": to_text(NOW + timedelta(hours=3)),
    }
    listed = ListedVms({SCALE_SET: {"0": window}}, problems={"aks-a": "500 InternalServerError"})
    history = History(
        world_of(nodes), builders.settings("sources: {arm: {enabled: true, waitForNotice: Never}}")
    )
    history.world.clients["arm"] = listed
    history.until_still()
    assert history.cluster.nodes["n0"].unschedulable
    assert not history.cluster.nodes["n1"].unschedulable
    return history, listed
