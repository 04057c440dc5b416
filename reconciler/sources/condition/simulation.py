"""The node-problem-detector of a simulated AKS cluster: it reports the events of each VM by a condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.node import Condition
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.platform import Reporter, SimulatedPlatform
from reconciler.sources.condition.source import MAIN

NO_EVENT = Condition(MAIN, "False", "NoVMEventScheduled", "VM has no scheduled event")
"""What the detector writes when no event is scheduled."""

_LINK = "For more information, see https://aka.ms/aks/scheduledevents."


class Detector:
    """The detectors of all nodes that have the condition."""

    reporter = Reporter.CONDITION
    quiet = (NO_EVENT,)

    def __init__(self, cluster: SimulatedCluster, platform: SimulatedPlatform, prefix: str) -> None:
        del platform, prefix
        self._cluster = cluster

    def publish(self, node: str, vm: str, events: Sequence[Mapping[str, object]]) -> None:
        """Set the condition of a node that has one."""
        del vm
        if self._cluster.nodes[node].condition(MAIN) is not None:
            self._cluster.set_condition(node, condition(events))


def condition(events: Iterable[Mapping[str, object]]) -> Condition:
    """Return the condition by which AKS's detector reports these events.

    It shows only one of them: the first after `sort_by(.EventStatus)|reverse|sort_by(.NotBefore)`, a sort of
    text.
    """
    shown = sorted(events, key=lambda event: str(event["EventStatus"]), reverse=True)
    shown.sort(key=lambda event: str(event["NotBefore"]))
    if not shown:
        return NO_EVENT
    event = shown[0]
    date = f": {event['NotBefore']}" if event["NotBefore"] else ""
    message = (
        f"{event['EventType']} {event['EventStatus']}{date}. "
        f"DurationInSeconds: {event['DurationInSeconds']}. {event['Description']} "
        f"{_LINK} EventId: {event['EventId']}"
    )
    return Condition(MAIN, "True", "VMEventScheduled", message)


SIMULATED: Mapping[str, object] = {}
"""It asks no service."""

AGENTS = (Detector,)
