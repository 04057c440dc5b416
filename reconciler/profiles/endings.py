"""Endings: whether we can end the maintenance of a node ourselves, or only the platform can.

Only a case that we can end starts early: any other node would stand empty, and hold a place, until its date.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from reconciler.model.event import MaintenanceEvent, Reading
from reconciler.model.instructions import Waives
from reconciler.model.machine import Machine
from reconciler.model.node import Node
from reconciler.model.plan import AfterDrain, Ending
from reconciler.model.record import CaseRecord
from reconciler.settings.policies import EventPolicy


class Means(Struct, frozen=True):
    """What a pass knows about a node by which its maintenance could end before the platform does it.

    `notice` says that a source of the node reports maintenance minutes before it begins. `machine` is None if
    no provider knows the node. `twin` names a node with the same providerID, empty if there is none. `vms`
    returns the nodes of each VM, by its name in signals (casefolded). `in_vain` says for which shared events
    a drain of this node would wait in vain for other nodes, and why, by the ID (casefolded). `spread` is how
    far another clock, which may be right, is ahead of the time of the pass: deadlines go by that one. `ends`
    are the questions how an event ends, one for each offer that can end one. `waives` returns what the drain
    for an event does not wait for, because a person began it.
    """

    notice: bool = False
    machine: Machine | None = None
    twin: str = ""
    readings: tuple[Reading, ...] = ()
    vms: Callable[[], Mapping[str, Sequence[str]]] = dict
    record: CaseRecord = CaseRecord()
    in_vain: Mapping[str, str] = field(default_factory=dict)
    spread: timedelta = timedelta()
    ends: tuple[Ends, ...] = ()
    waives: Waives = lambda _event: None


Ends = Callable[[MaintenanceEvent, EventPolicy, Node, Means, datetime], Ending | None]
"""Returns how an offer ends an event of a node now (aware, UTC), None if the settings do not want that."""


def after_drain(
    event: MaintenanceEvent, policy: EventPolicy, node: Node, means: Means, now: datetime
) -> AfterDrain:
    """Return how the event ends once the node is drained, and why only the platform ends it, if so.

    `now` is aware, UTC.
    """
    plan = event.plan
    offered = plan.asks if plan is not None and plan.accept and plan.open_at(now) else ""
    asked = (ends(event, policy, node, means, now) for ends in means.ends)
    endings = tuple(ending for ending in asked if ending is not None)
    refusals = [ending.refused for ending in endings]
    if offered:
        refusals.append(why_not_asked(offered, means.twin))
    refused = "; ".join(refusals) if all(refusals) else ""
    if refusals and not refused and any(old.matches(event) for old in means.record.late):
        refused = "this was tried, and did not end it"
    return AfterDrain(endings, offered, refused)


def why_not_asked(platform: str, twin: str) -> str:
    """Return why a platform, in words, can't be asked to do the maintenance of a VM; empty if it can."""
    return f"{platform} is not asked: node {twin} has the same providerID" if twin else ""
