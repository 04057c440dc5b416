"""The maintenance of the ESX host under a node as a source: a label of the node, or vCenter's own answer.

maintenance-controller's ESX part writes `cloud.sap/esx-in-maintenance`: `true` while the host is in
maintenance mode, `alarm` while it has one of the configured alarms, and `false` otherwise. Where vCenter is
asked instead, a node names its host in `kubernetes.cloud.sap/host`. The scope is the zone of the node,
because each zone may have a vCenter of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta, Struct

from reconciler.features.esx.settings import LABEL, SECTION, VERSION, EsxSource, VCenters
from reconciler.model import limits
from reconciler.model.event import Answer, Initiator, Kind, Reading, Signal, Status
from reconciler.model.node import Node
from reconciler.model.polling import AnyMemory, Memory
from reconciler.model.record import Record
from reconciler.model.values import Name
from reconciler.passes.plugin import Source, SourceContext, Wants
from reconciler.passes.polled import PolledSource
from reconciler.settings.schema import Settings

ESX = "esx"
"""The source that reads the label of a node."""

VCENTER = "vcenter"
"""The source that asks vCenter, and the client of vCenter."""

HOST = "kubernetes.cloud.sap/host"

REBOOT_OK = "cloud.sap/esx-reboot-ok"
"""The label of a node that may go while its host is in maintenance."""

MAINTENANCE, ALARM, NONE = "true", "alarm", "false"


class HostState(Struct, frozen=True):
    """A host that is in maintenance mode or enters it, or has alarms that the settings name.

    While it enters, vCenter waits for its VMs to go. `version` is that of ESX.
    """

    maintenance: bool = False
    alarms: Annotated[tuple[Name, ...], Meta(max_length=limits.INSTANCES)] = ()
    version: Name = ""
    entering: bool = False

    @property
    def label(self) -> str:
        """What the label says of the host; an alarm wins."""
        return ALARM if self.alarms else MAINTENANCE if self.maintenance or self.entering else NONE


class EsxHosts(Source):
    """Maintenance and alarms of ESX hosts, as the label of each node reports them."""

    name = ESX
    reports_start = False
    who = "the administrator of the ESX controller, which writes the label of {node}: see docs/esx.md"

    def enabled(self, settings: Settings) -> bool:
        """Whether `sources.esx` is on, and names no vCenter to ask instead."""
        section = SECTION.of(settings)
        return section.enabled and not section.vcenters

    def wants(self, settings: Settings) -> Wants:
        """Return the label, those that describe the host, and the one that lets the node go."""
        del settings
        return Wants(labels=frozenset({LABEL, VERSION, HOST, REBOOT_OK}))

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return what the label reports. Without it, nobody reports about a host of this node."""
        section = SECTION.of(context.settings)
        return (_permitted(read(node, section), node, section),)


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


def _permitted(reading: Reading, node: Node, section: EsxSource) -> Reading:
    """Return the reading; without its event if the settings want a label for it that the node lacks."""
    waits = section.reboot_ok and node.labels.get(REBOOT_OK) != "true"
    return Reading(reading.source, Answer.NO_EVENT) if waits and reading.signals else reading


def signal(kind: Kind, host: str, version: str, state: str) -> Signal:
    """Return the signal about a host; `state` says in words what it is in."""
    name = f"the ESX host {host}".rstrip() + (f" ({version})" if version else "")
    return Signal(
        ESX, kind, Status.SCHEDULED, description=limits.text(f"{name} {state}"), initiator=Initiator.PLATFORM
    )


_MAINTENANCE, _ALARM = Kind.REBOOT, Kind.REDEPLOY
"""The kinds of the signals before the settings choose others."""


class VCenterHosts(PolledSource[str, HostState]):
    """Maintenance and alarms of ESX hosts, as vCenter reports them; one list for each zone."""

    name = VCENTER
    reports_start = False
    who = "the administrator of vCenter: does it list the host of {node}? See docs/esx.md"
    client = "reconciler.features.esx.power_client"
    fact = HostState
    retry = timedelta(minutes=2)
    follow = timedelta(minutes=1)

    def section(self, settings: Settings) -> VCenters:
        """Return what `sources.esx` asks of vCenter servers."""
        return SECTION.of(settings).polled

    def locate(self, node: Node) -> tuple[str, str] | None:
        """Return the zone and the host of the node, None if its host is not known."""
        host = node.labels.get(HOST, "")
        return (node.zone, host.casefold()) if host else None

    def describe(self, scope: str) -> str:
        """Return the vCenter in words."""
        return f"the vCenter of zone {scope}" if scope else "the vCenter"

    def follows(self, record: Record) -> bool:
        """Whether a node is out of service because of its host, which may leave maintenance soon."""
        return any(self.name in event.sources for _, kept in record.profiles for event in kept.events)

    def host(self, node: Node, memories: Mapping[str, AnyMemory], now: datetime) -> HostState | None:
        """Return the host of the node as vCenter has reported it, None if that is not known."""
        memory, place = memories.get(self.name, Memory()), self.locate(node)
        reading = self.reading(node, memory, now)
        answer = memory.of(place[0]) if place is not None else None
        if reading is None or reading.answer is Answer.UNKNOWN or answer is None or place is None:
            return None
        return next(iter(answer.facts.get(place[1], ())), HostState())

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
        section = SECTION.of(context.settings)
        kinds = {_MAINTENANCE: section.maintenance, _ALARM: section.alarm}
        readings = (
            replace(one, signals=tuple(replace(each, kind=kinds[each.kind]) for each in one.signals))
            for one in super().read(node, context)
        )
        return tuple(_permitted(reading, node, section) for reading in readings)


HOSTS = VCenterHosts()

SOURCES = (EsxHosts(), HOSTS)
