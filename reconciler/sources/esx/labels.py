"""The maintenance of the ESX host under a node as a source: a label of the node.

maintenance-controller's ESX part writes `cloud.sap/esx-in-maintenance`: `true` while the host is in
maintenance mode, `alarm` while it has one of the configured alarms, and `false` otherwise.
"""

from __future__ import annotations

from reconciler.model import limits
from reconciler.model.event import ESX, Answer, Initiator, Kind, Reading, Signal, Status
from reconciler.model.node import Node
from reconciler.passes.plugin import Source, SourceContext, Wants
from reconciler.settings.schema import Settings
from reconciler.settings.sections.sources import EsxSource

LABEL = "cloud.sap/esx-in-maintenance"
VERSION = "cloud.sap/esx-version"
HOST = "kubernetes.cloud.sap/host"

MAINTENANCE, ALARM, NONE = "true", "alarm", "false"


class EsxHosts(Source):
    """Maintenance and alarms of ESX hosts, as the label of each node reports them."""

    name = ESX

    def enabled(self, settings: Settings) -> bool:
        """Whether `sources.esx` is on, and names no vCenter to ask instead."""
        section = settings.sources.esx
        return section.enabled and not section.vcenters

    def wants(self, settings: Settings) -> Wants:
        """Return the label, and those that describe the host."""
        del settings
        return Wants(labels=frozenset({LABEL, VERSION, HOST}))

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return what the label reports. Without it, nobody reports about a host of this node."""
        return (read(node, context.settings.sources.esx),)


def read(node: Node, section: EsxSource) -> Reading:
    """Return what the label of the node reports about its host."""
    value = node.labels.get(LABEL)
    if value is None:
        return Reading(ESX, Answer.UNKNOWN, because=f"it has no label {LABEL}", installed=False)
    if value == NONE:
        return Reading(ESX, Answer.NO_EVENT)
    kinds = {MAINTENANCE: section.maintenance, ALARM: section.alarm}
    if value not in kinds:
        because = f"the label {LABEL} is {limits.excerpt(value)}; known are true, alarm and false"
        return Reading(ESX, Answer.UNKNOWN, because=because)
    state = "is in maintenance" if value == MAINTENANCE else "has an alarm"
    found = signal(kinds[value], node.labels.get(HOST, ""), node.labels.get(VERSION, ""), state)
    return Reading(ESX, Answer.EVENT, (found,))


def signal(kind: Kind, host: str, version: str, state: str) -> Signal:
    """Return the signal about a host; `state` says in words what it is in."""
    name = f"the ESX host {host}".rstrip() + (f" ({version})" if version else "")
    return Signal(
        ESX,
        kind,
        Status.SCHEDULED,
        description=limits.text(f"{name} {state}"),
        initiator=Initiator.PLATFORM,
    )
