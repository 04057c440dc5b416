"""What is published of a case agrees with the report."""

from __future__ import annotations

from datetime import datetime

from reconciler.features.publishing.drainsafe import DRAINSAFE_STATE
from reconciler.features.publishing.objects import Stage
from reconciler.model.keys import DEFAULT_PREFIX, keys_of
from reconciler.model.moments import to_text
from tests.laws.agreement import ShownNode
from tests.support.worlds import maintenances

KEYS = keys_of(DEFAULT_PREFIX)


def agrees(shown: ShownNode) -> None:
    """The labels, drainsafe's annotation and the NodeMaintenance say what the report does."""
    report, cluster = shown.report, shown.history.cluster
    node, deadline = cluster.nodes[shown.node.node], report["deadline"]
    seconds = int(datetime.fromisoformat(deadline).timestamp()) if deadline else 0
    (view,) = (each for each in maintenances(cluster).values() if each.node == node.name)

    assert (node.labels[KEYS.state], node.labels[KEYS.deadline]) == (report["state"], str(seconds))
    drained = node.annotations[DRAINSAFE_STATE] in ("NodeDrained", "MaintenanceStarted")
    assert drained is (view.state == Stage.DRAINED)
    if view.state in (Stage.WAITING, Stage.HELD, Stage.CORDONED):
        codes = dict.fromkeys(hold["check"] for hold in report["holds"] if hold["check"] != "drain")
        assert (view.reason, view.due and to_text(view.due)) == (",".join(codes), deadline)
