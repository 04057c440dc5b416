"""Which machines a pass reads: each takes a request to its provider, so only those that may be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from reconciler.features.machines.replacing import DELETION, ONE_MORE
from reconciler.features.machines.settings import REPLACES
from reconciler.model.errors import CloudError, ClusterError
from reconciler.model.event import Reading
from reconciler.model.machine import Machine, MachineRef
from reconciler.model.node import Node
from reconciler.model.ports import Outside
from reconciler.model.problems import internal
from reconciler.model.record import Record
from reconciler.model.values import replace
from reconciler.passes.plugin import Observed
from reconciler.settings.schema import Settings

_NOT_READ_YET = "it was not read yet; a later pass reads it"


def read_machines(outside: Outside, observed: Observed) -> Mapping[str, Machine]:
    """Return the machines of the nodes that an event replaces, and of those whose replacement has started.

    They are by the node's name. What can't be read is the problem of its machine.
    """
    reader, settings = outside.machines, observed.settings
    if reader is None:
        return {}
    wanted = settings.says(REPLACES.key)
    refs: list[MachineRef] = []
    for node in observed.nodes:
        record = observed.records.get(node.name)
        try:
            may = settings.manages(node.labels) and _may_be_replaced(
                node, observed.readings[node.name], record, settings, wanted=wanted
            )
            ref = observed.machine_of(node) if may else None
        except Exception as error:  # noqa: BLE001 - one node's data harms that node only
            internal(f"node {node.name}: its machine can't be found", error)
            continue
        if ref is None:
            continue
        drain = record.drain if record is not None else None
        asked = record is not None and record.has_asked(DELETION.name)
        refs.append(replace(ref, drained=drain is not None and drain.drain.done is not None, asked=asked))
    if not refs:
        return {}
    try:
        read = outside.beside.read(("machines", "read"), partial(reader.machines, refs), most=1)
        # An answer that came late is about the machines of an earlier pass.
        known = {machine.ref: machine for machine in read}
        return {ref.node: known.get(ref, Machine(ref, problem=_NOT_READ_YET)) for ref in refs}
    except (ClusterError, CloudError) as error:
        return {ref.node: Machine(ref, problem=str(error)) for ref in refs}


def _may_be_replaced(
    node: Node, readings: tuple[Reading, ...], record: Record | None, settings: Settings, *, wanted: bool
) -> bool:
    kept = [profile for _, profile in record.profiles] if record is not None else []
    if record is not None and (record.has_asked(ONE_MORE.name) or record.has_asked(DELETION.name)):
        return True
    if any(signal.replaces for reading in readings for signal in reading.signals):
        return True
    if not wanted:
        return False
    reported = [(signal.kind, signal.condition) for reading in readings for signal in reading.signals]
    known = [(event.kind, event.condition) for profile in kept for event in profile.events]
    policies = settings.policies(node.labels)
    meant = (policies[event] for event in (*reported, *known))
    return any(policy is not None and policy.says(REPLACES.key) for policy in meant)
