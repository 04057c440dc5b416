"""The maintenance of the ESX host under a node as a source: vCenter's own answer.

A node names its host in the label `kubernetes.cloud.sap/host`. The scope is the zone of the node, because
each zone may have a vCenter of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.model.event import VCENTER, Kind, Reading, Signal
from reconciler.model.machine import HostState
from reconciler.model.node import Node
from reconciler.passes.plugin import SourceContext
from reconciler.passes.polled import PolledSource
from reconciler.settings.schema import Settings
from reconciler.settings.sections.sources import VCenters
from reconciler.sources.esx.labels import HOST, EsxHosts, signal

_MAINTENANCE, _ALARM = Kind.REBOOT, Kind.REDEPLOY
"""The kinds of the signals before the settings choose others."""


class VCenterHosts(PolledSource[str, HostState]):
    """Maintenance and alarms of ESX hosts, as vCenter reports them; one list for each zone."""

    name = VCENTER
    client = "reconciler.sources.esx.client"
    fact = HostState
    retry = timedelta(minutes=2)

    def section(self, settings: Settings) -> VCenters:
        """Return what `sources.esx` asks of vCenter servers."""
        return settings.sources.esx.polled

    def locate(self, node: Node) -> tuple[str, str] | None:
        """Return the zone and the host of the node, None if its host is not known."""
        host = node.labels.get(HOST, "")
        return (node.zone, host.casefold()) if host else None

    def describe(self, scope: str) -> str:
        """Return the vCenter in words."""
        return f"the vCenter of zone {scope}" if scope else "the vCenter"

    def signals(self, name: str, facts: Sequence[HostState], now: datetime) -> tuple[Signal, ...]:
        """Return one signal: an alarm is reported before maintenance."""
        del now
        for one in facts:
            if one.alarms:
                state = f"has an alarm: {', '.join(one.alarms)}"
                return (replace(signal(_ALARM, name, one.version, state), source=VCENTER),)
            if one.maintenance or one.entering:
                state = "is in maintenance" if one.maintenance else "enters maintenance mode"
                found = signal(_MAINTENANCE, name, one.version, state)
                return (replace(found, source=VCENTER),)
        return ()

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return what vCenter reports about the host, with the kinds that the settings choose."""
        section = context.settings.sources.esx
        kinds = {_MAINTENANCE: section.maintenance, _ALARM: section.alarm}
        return tuple(
            replace(one, signals=tuple(replace(each, kind=kinds[each.kind]) for each in one.signals))
            for one in super().read(node, context)
        )

    def write_scope(self, scope: str) -> str:
        """Return the zone."""
        return scope

    def read_scope(self, document: object) -> str:
        """Parse the zone."""
        return str(document)


SOURCES = (EsxHosts(), VCenterHosts())
