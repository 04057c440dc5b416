"""What happens to the VM of a node beside its drain: it goes off with its host, and comes back with it.

That it goes off is an offer: the host's maintenance begins by it, so it belongs to a case. That it comes back
is owed for as long as the node has maintenance-controller's annotation, also after the case or without a
record, so it is none. The annotations of the node say what was done, and each is written before what it
describes. One that a person has switched on is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, runtime_checkable

from msgspec import Struct

from reconciler.features.esx.settings import INITIATED, LABEL, POWER, VERSION
from reconciler.features.esx.source import ALARM, HOST, HOSTS, NONE, REBOOT_OK, VCENTER, HostState
from reconciler.features.esx.vm import (
    OFF,
    ON,
    POWER_OFF,
    POWER_ON,
    SHUT_DOWN,
    Named,
    NodeVm,
    Power,
    Switch,
    Vm,
    power_of,
)
from reconciler.model.drains import Grace
from reconciler.model.holds import HoldKind
from reconciler.model.instructions import instructions_of
from reconciler.model.keys import keys_of
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Condition, Node
from reconciler.model.outcome import ActionKind
from reconciler.model.plan import Hold, Notice, NoticeType
from reconciler.model.ports import Outside
from reconciler.model.record import CaseRecord, State
from reconciler.model.selector import VALUE
from reconciler.model.values import replace
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.node_facts import Decider, NodeFacts, PassContext
from reconciler.passes.plugin import Deciding, Feature, Fleet, LabelsOf, Observed, Wants
from reconciler.profiles.situation import Offer, Request, Situation
from reconciler.profiles.vocabulary import CheckResult, failed, passed
from reconciler.settings.schema import Settings

NAME = "esx"
TRUE = "true"
THEM = "maintenance-controller"

VM_POWER = HoldKind(
    "vmPower",
    "the administrator of the host and the VM of {node}; `kubectl describe node {node}` shows the "
    "annotations about them",
)

MOST_VMS = 500
"""Nodes whose VMs a pass reads, the first ones by name."""

AGAIN = timedelta(seconds=30)
"""After so long, a VM that is not in the state that was asked for is asked for again."""

_SOON, _LATER = timedelta(seconds=5), timedelta(minutes=1)
_NOTHING = NodeSigns()


class NodeOnHost(Struct, frozen=True):
    """What was read of a node: its host and its VM, each None if it is not known, and why no VM is."""

    host: HostState | None
    vm: Vm | None
    problem: str = ""

    @property
    def busy(self) -> bool:
        """Whether vCenter waits for the VM to go off, or has an alarm for its host."""
        return self.host is not None and self.host.label != NONE


@runtime_checkable
class VmReader(Protocol):
    """The client of vCenter servers, as a reader of VMs."""

    def vms(self, nodes: Sequence[Named]) -> Mapping[str, NodeVm]:
        """Return the VM of each node by the node's name. Raises nothing."""


def _reads(settings: Settings) -> Wants:
    """Return the labels and the annotation that decide; the UUID only where VMs are switched."""
    return Wants(
        labels=frozenset({HOST, REBOOT_OK}),
        annotations=frozenset({INITIATED}),
        system_uuid=POWER.of(settings).enabled,
    )


def _adopts(node: Node, settings: Settings) -> str:
    """Return whose cordon a node has whose reboot began before: it is taken off with the annotation."""
    return THEM if POWER.of(settings).enabled and _initiated(node) else ""


def _observe(outside: Outside, observed: Observed) -> Mapping[str, NodeVm]:
    """Return the VMs of the nodes that go off, are off, or come back."""
    settings = observed.settings
    if not POWER.of(settings).enabled:
        return {}
    key = keys_of(settings.keys.prefix).power

    def concerned(node: Node) -> bool:
        if HOST not in node.labels or not settings.manages(node.labels):
            return False
        if _initiated(node) or key in node.annotations:
            return True
        host = HOSTS.host(node, observed.memories, observed.now)
        return _willing(node) and host is not None and host.label != NONE

    nodes = [_named(node) for node in observed.nodes if concerned(node)][:MOST_VMS]
    if not nodes:
        return {}
    client = outside.clients.get(VCENTER)
    reader = getattr(client, "behind", client)
    if not isinstance(reader, VmReader):
        return {node.node: NodeVm(problem="this process reads no VMs") for node in nodes}
    return outside.beside.read(("nodes", "for", NAME), partial(reader.vms, nodes))


def _named(node: Node) -> Named:
    return Named(node.name, node.zone, node.system_uuid)


def _initiated(node: Node) -> bool:
    return node.annotations.get(INITIATED) == TRUE


def _willing(node: Node) -> bool:
    return node.labels.get(REBOOT_OK) == TRUE


class _GoesOff(Struct, frozen=True):
    """How the VM of a node goes off now: by this action, for this reason, until the next one (UTC)."""

    action: ActionKind
    reason: str
    until: datetime | None = None


def _goes_off(vm: Vm, first: datetime, now: datetime, settings: Settings) -> _GoesOff:
    """Return how the VM goes off `now` that vCenter was asked for `first`: its guest has its time for it."""
    ends = first + POWER.of(settings).shutdown_timeout
    if vm.tools and now < ends:
        reason = f"its guest shuts down since {to_text(first)}; its VM is powered off at {to_text(ends)}"
        return _GoesOff(SHUT_DOWN, reason, ends)
    why = "no guest tools run" if not vm.tools else f"its guest did not shut down by {to_text(ends)}"
    return _GoesOff(POWER_OFF, f"its VM is powered off: {why}")


def _asked(record: CaseRecord, done: Power) -> tuple[datetime, datetime] | None:
    """Return when vCenter was asked first and last in this maintenance of the host to let the VM go off.

    What was asked before the VM was switched on again was for an earlier one.
    """
    asked = record.asked_by(OFF_WITH_HOST.name)
    if asked is None or (done.on is not None and asked.last <= done.on):
        return None
    try:
        # The clock that wrote it may have been ahead.
        return min(from_text(asked.own), asked.last), asked.last
    except ValueError:
        return asked.last, asked.last


def _due(situation: Situation) -> CheckResult:
    """Pass when the host waits for a drained node to go off, and vCenter was not asked for that just now."""
    node, record, known = situation.node, situation.record, _known(situation)
    if known is None:
        return failed("", holds=False)
    if not known.busy or not _initiated(node) or not _willing(node):
        return failed("no host waits for the node to go off", holds=False)
    if not node.unschedulable or record.drain is None or record.drain.done is None:
        return failed("the node is not drained yet", holds=False)
    done, now = _done(node, situation.settings), situation.now.replace(microsecond=0)
    if known.vm is None or known.vm.state != ON or done.off is not None:
        return failed("its VM is not on, or was off already", holds=False)
    asked = _asked(record, done)
    first, last = asked or (now, None)
    goes = _goes_off(known.vm, first, now, situation.settings)
    if last is not None and now < last + AGAIN:
        # The first request of another kind waits for no pause.
        before = _goes_off(known.vm, first, last, situation.settings)
        if before.action is goes.action:
            return failed(goes.reason, last + AGAIN, holds=False)
    return passed(goes.reason)


def _request(situation: Situation) -> Request | None:
    """Return the request that is due, with when the first one was sent. The record has it before vCenter."""
    node, known = situation.node, _known(situation)
    if known is None or known.vm is None:
        return None
    now = situation.now.replace(microsecond=0)
    first, _ = _asked(situation.record, _done(node, situation.settings)) or (now, None)
    goes = _goes_off(known.vm, first, now, situation.settings)
    task = Switch(_named(node), known.vm.id, goes.action)
    return Request(_notice(goes.reason), task, own=to_text(first))


OFF_WITH_HOST = Offer("esxPower", "vCenter", _due, _request, (SHUT_DOWN, POWER_OFF))


def _known(situation: Situation) -> NodeOnHost | None:
    known: NodeOnHost | None = situation.of_features.get(NAME)
    return known


def _done(node: Node, settings: Settings) -> Power:
    return power_of(node.annotations.get(keys_of(settings.keys.prefix).power)) or Power()


class _Going(Struct, frozen=True):
    """One node with all that decides about its VM."""

    node: Node
    decision: CaseDecision
    context: PassContext
    known: NodeOnHost
    vm: Vm
    done: Power | None

    @property
    def now(self) -> datetime:
        return self.context.second

    def hold(self, reason: str, *, until: datetime | None = None, asks: timedelta = _LATER) -> Hold:
        return VM_POWER.on(self.node.name, reason, until, asks=self.now + asks)

    def keep(self, power: Power | None) -> Mapping[str, str | None]:
        """Return the change of the annotation with what was done."""
        key = self.context.keys.power
        text = power.text if power is not None else None
        return {key: text} if self.node.annotations.get(key) != text else {}


def _notice(message: str, type_: NoticeType = NoticeType.NORMAL) -> Notice:
    return Notice("MaintenancePower", message, type_)


def _signs(decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeSigns:
    """Return what changes on the node, what is asked of its VM, and what that waits for."""
    read, key, settings = node.read, context.keys.power, context.settings
    done = power_of(read.annotations.get(key))
    if not POWER.of(settings).enabled:
        return NodeSigns({key: None}) if done is not None and not decision.open else _NOTHING
    known = _on_host(read, context)
    # Only a node that is out of service because of its host goes off with it.
    for_host = decision.state is State.IN_MAINTENANCE and any(
        VCENTER in event.sources for event in decision.record.events
    )
    goes = _willing(read) and known.busy and for_host
    if not _initiated(read) and not goes and done is None:
        return _NOTHING
    if known.vm is None:
        return _not_known(read, decision, context, known.problem)
    going = _Going(read, decision, context, known, known.vm, done)
    if not _initiated(read):
        return _begin(going, goes=goes)
    if not decision.open and going.vm.state == ON:
        return _over(read, context)
    instructions = instructions_of(read, settings.keys.prefix, context.now, context.snapshot.ledger.holds)
    if instructions.hold is not None and instructions.hold.stops:
        return _NOTHING
    return _stay_off(going) if known.busy else _come_back(going)


def _on_host(node: Node, context: PassContext) -> NodeOnHost:
    read: Mapping[str, NodeVm] = context.snapshot.for_settings.of_features.get(NAME, {})
    found = read.get(node.name, NodeVm(problem="it was not read"))
    return NodeOnHost(HOSTS.host(node, context.snapshot.memories, context.now), found.vm, found.problem)


def _not_known(node: Node, decision: CaseDecision, context: PassContext, problem: str) -> NodeSigns:
    if not decision.open and node.ready:
        # It runs, whichever VM it is.
        return _over(node, context)
    reason = f"the power of its VM is not changed: {problem}"
    return NodeSigns(holds=(VM_POWER.on(node.name, reason, asks=context.second + _LATER),))


def _over(node: Node, context: PassContext) -> NodeSigns:
    return _removed(node, context.settings.keys.prefix)


def _begin(going: _Going, *, goes: bool) -> NodeSigns:
    """Return the annotation of a node that goes off with its host; none for a VM that others switched off."""
    if going.done is not None or _asked(going.decision.record, Power()) is not None:
        if not going.decision.open:
            return NodeSigns(going.keep(None))
        reason = f"somebody removed the annotation {INITIATED}, so its VM is left as it is"
        return NodeSigns(holds=(going.hold(reason),))
    if not goes or going.vm.state == ON:
        return NodeSigns({INITIATED: TRUE} if goes else {})
    return NodeSigns(holds=(going.hold(f"its VM is left as it is: somebody else made it {going.vm.state}"),))


def _stay_off(going: _Going) -> NodeSigns:
    """Return what a node waits for whose VM goes off or is off, and since when it is off."""
    done = going.done or Power()
    if going.vm.state == OFF:
        off = going.keep(Power(off=done.off or going.now))
        return NodeSigns(off, holds=(going.hold("its VM is off until the host leaves maintenance"),))
    if done.off is not None:
        reason = (
            f"somebody switched its VM on after {to_text(done.off)}, so it is left on while the host waits"
        )
        notices = () if done.told is not None else (_notice(reason, NoticeType.WARNING),)
        kept = going.keep(replace(done, told=done.told or going.now))
        return NodeSigns(kept, holds=(going.hold(reason),), notices=notices)
    asked = _asked(going.decision.record, done)
    if asked is None or going.vm.state != ON or not _willing(going.node):
        return _NOTHING
    goes = _goes_off(going.vm, asked[0], going.now, going.context.settings)
    return NodeSigns(holds=(going.hold(goes.reason, until=goes.until, asks=_SOON),))


def _come_back(going: _Going) -> NodeSigns:
    """Return the next step of a node whose host has left maintenance: on, and Ready before its uncordon."""
    if going.known.host is None:
        return NodeSigns(
            holds=(going.hold("what its host does is not known"),) if going.vm.state == OFF else ()
        )
    if going.vm.state == ON:
        return _NOTHING
    if going.vm.state != OFF:
        return NodeSigns(holds=(going.hold(f"its VM is {going.vm.state}, which a person has to end"),))
    reason = "its VM is powered on: the host left maintenance"
    due = going.done.on + AGAIN if going.done is not None and going.done.on is not None else going.now
    if going.now < due:
        return NodeSigns(holds=(going.hold(reason, until=due, asks=_SOON),))
    return NodeSigns(
        # What was done in this maintenance of the host does not count in the next one.
        going.keep(Power(on=going.now)),
        tasks=(Switch(_named(going.node), going.vm.id, POWER_ON),),
        holds=(going.hold(reason, asks=_SOON),),
        notices=(_notice(reason),),
    )


class _Powered(Decider):
    """What the profile of the platform has to know: nodes that can't be Ready, and drains in haste."""

    def decide(
        self, decision: CaseDecision, node: NodeFacts, situation: Situation, context: PassContext
    ) -> tuple[NodeFacts, Situation]:
        """Return both with what was read of the VM.

        A node whose VM is off is not Ready, although its kubelet has said so a moment ago.
        """
        if not POWER.of(context.settings).enabled or HOST not in node.read.labels:
            return node, situation
        known = _on_host(node.read, context)
        situation = replace(situation, of_features={**situation.of_features, NAME: known})
        if known.vm is None or known.vm.state == ON or not situation.node.ready:
            return node, situation
        off = Condition("Ready", "Unknown", "PoweredOff")
        others = (condition for condition in situation.node.conditions if condition.type != "Ready")
        return node, replace(situation, node=replace(situation.node, conditions=(*others, off)))

    def finish(self, decision: CaseDecision, node: NodeFacts, context: PassContext) -> None:
        """Give pods no time to end in the drain for a host that has an alarm."""
        order = decision.drain
        if order is None or not any(VCENTER in judged.event.sources for judged in node.current):
            return
        host = HOSTS.host(node.read, context.snapshot.memories, context.now)
        if host is not None and host.label == ALARM:
            decision.drain = replace(order, options=replace(order.options, grace=Grace(0)))


def _labels(fleet: Fleet) -> LabelsOf | None:
    """Return what says of a node in which state its host is."""
    return partial(_labels_of, fleet=fleet) if POWER.of(fleet.settings).enabled else None


def _labels_of(node: Node, fleet: Fleet) -> Mapping[str, str]:
    """Return what the labels of a node say of its host; one that is not known leaves them as they are."""
    host = HOSTS.host(node, fleet.snapshot.memories, fleet.now)
    if host is None:
        return {}
    version = {VERSION: host.version} if host.version and re.fullmatch(VALUE, host.version) else {}
    return {LABEL: host.label, **version}


def _decide(nodes: Sequence[NodeFacts], context: PassContext) -> Decider | None:
    del nodes
    return _Powered() if POWER.of(context.settings).enabled else None


def _bears_signs(node: Node, prefix: str) -> bool:
    return INITIATED in node.annotations or keys_of(prefix).power in node.annotations


def _removed(node: Node, prefix: str) -> NodeSigns:
    keys = (INITIATED, keys_of(prefix).power)
    return NodeSigns({key: None for key in keys if key in node.annotations})


FEATURE = Feature(
    NAME,
    (VM_POWER,),
    (POWER_ON,),
    offers=(OFF_WITH_HOST,),
    reads=_reads,
    adopts=_adopts,
    observe=_observe,
    decide=Deciding(_decide),
    labels=_labels,
    bears_signs=_bears_signs,
    signs=_signs,
    removed=_removed,
)
