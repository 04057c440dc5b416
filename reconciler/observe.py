"""Observe: read what a pass has to know, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.errors import ClusterError
from reconciler.machines.registry import ANNOTATIONS, machine_of
from reconciler.model.aws import AwsMemory
from reconciler.model.azure import CloudMemory
from reconciler.model.drains import DrainProgress
from reconciler.model.event import Reading
from reconciler.model.machine import Machine
from reconciler.model.maintenance import Maintenance
from reconciler.model.node import READ_LABELS, Node, Wanted
from reconciler.model.outside import Outside
from reconciler.model.pod import Pod
from reconciler.model.ports import ClusterReader, MachineReader, SourceClient
from reconciler.model.record import Record
from reconciler.model.record_text import record_of
from reconciler.model.selector import LabelSelector
from reconciler.model.snapshot import Agents, Remediator, Snapshot
from reconciler.publishing.signs import DRAINSAFE_KEYS, LIFECYCLE
from reconciler.settings.schema import Settings
from reconciler.settings.sections.others import Sign
from reconciler.sources import arm, aws, node_condition, published, request


def observe(
    outside: Outside,
    settings: Settings,
    now: datetime,
    *,
    drains: Mapping[str, DrainProgress] | None = None,
    capacity: bool = False,
) -> Snapshot:
    """Return the snapshot of one pass; raises ClusterError when the nodes themselves can't be read.

    Pods are read for the nodes that are being drained, one request each; nothing else is asked per node.
    `capacity` keeps what a preview needs to say whether there is room elsewhere. Sources that ask a service
    of their own ask it where the settings switch them on and the ledger says that it is time. `now` is
    aware. Machine providers are asked for those nodes alone that may be replaced.
    """
    reader = outside.reader
    nodes = reader.nodes(wanted(settings, capacity=capacity))
    agents = reader.agents() if settings.sources.imds.enabled else Agents()
    remediator = reader.remediator() if settings.sources.node_conditions.enabled else Remediator()
    prefix = settings.keys.prefix
    records = {node.name: found for node in nodes if (found := record_of(node, prefix)) is not None}
    readable = {name: one for name, one in records.items() if isinstance(one, Record)}
    maintenances, problems = _maintenances(reader, settings)
    ledger = reader.ledger()
    asked = {name for name, one in readable.items() if one.self_service}
    planned = _ask(outside.clients.get(arm.SOURCE), nodes, ledger.arm, asked, settings, now)
    scheduled = _ask_ec2(outside.clients.get(aws.SOURCE), nodes, ledger.aws, settings, now)
    readings = {
        node.name: (*_read(node, settings, agents), *_read_clouds(node, settings, planned, scheduled, now))
        for node in nodes
    }
    return Snapshot(
        nodes=nodes,
        readings=readings,
        records=records,
        pods={name: reader.pods(name) for name, one in readable.items() if one.being_drained},
        namespaces=reader.namespaces() if _asks_for_namespaces(settings) else {},
        agents=agents,
        remediator=remediator,
        drains=dict(drains or {}),
        ledger=ledger,
        arm=planned,
        aws=scheduled,
        skew=reader.skew(),
        own_node=outside.itself.node,
        own_pod=outside.itself.pod,
        maintenances=maintenances,
        problems=problems,
        machines=_machines(outside.machines, nodes, readings, readable, settings),
    )


def wanted(settings: Settings, *, capacity: bool = False) -> Wanted:
    """Return which parts of a node these settings need; where pods could go, any label may decide."""
    return Wanted(
        # Signs of ours are seen also when they are no longer published: they are to be taken away.
        conditions=node_condition.CONDITIONS | settings.condition_types() | {"Ready", *LIFECYCLE},
        annotation_prefix=settings.keys.prefix,
        # Whose the machine is matters to a case that was begun, whatever the settings say by now.
        annotations=DRAINSAFE_KEYS | ANNOTATIONS,
        capacity=capacity,
        labels=None if capacity else READ_LABELS | settings.label_keys(),
    )


def add_pods(snapshot: Snapshot, reader: ClusterReader, names: Iterable[str]) -> Snapshot:
    """Return the snapshot with all that a preview of these nodes' drains needs.

    The pods of the whole cluster are read once, with what decides where else they could run.
    """
    chosen = set(names)
    if not chosen:
        return snapshot
    pods: dict[str, list[Pod]] = {node.name: [] for node in snapshot.nodes}
    for pod in reader.pods(placement=True):
        pods.setdefault(pod.node, []).append(pod)
    return replace(
        snapshot,
        pods={name: tuple(found) for name, found in pods.items()},
        budgets=reader.budgets(),
        namespaces=reader.namespaces(),
    )


def _maintenances(
    reader: ClusterReader, settings: Settings
) -> tuple[tuple[Maintenance, ...] | None, tuple[str, ...]]:
    """Return the NodeMaintenance objects and what is wrong with them: a view, so that no pass fails by it."""
    if Sign.NODE_MAINTENANCES not in settings.publish:
        return None, ()
    try:
        return reader.maintenances(settings.keys.prefix), ()
    except ClusterError as error:
        return None, (f"NodeMaintenance objects can't be read, and are left as they are: {error}",)


def _ask(
    client: SourceClient | None,
    nodes: tuple[Node, ...],
    memory: CloudMemory,
    self_service: Collection[str],
    settings: Settings,
    now: datetime,
) -> CloudMemory | None:
    """Return what is in force of ARM's answers, after asking for what is due; None where it is no source."""
    if not settings.sources.arm.enabled:
        return None
    fleet = tuple(node for node in nodes if settings.looks_after(node.labels))
    followed = {node.name for node in fleet if node.name in self_service}
    scopes = arm.due(fleet, memory, now, followed=followed)
    listings = client.ask(scopes) if client is not None and scopes else ()
    return arm.remembered(memory, listings, fleet, settings.sources.arm.every, now)


def _ask_ec2(
    client: SourceClient | None,
    nodes: tuple[Node, ...],
    memory: AwsMemory,
    settings: Settings,
    now: datetime,
) -> AwsMemory | None:
    """Return what is in force of EC2's answers, after asking for what is due; None where it is no source."""
    if not settings.sources.aws.enabled:
        return None
    fleet = tuple(node for node in nodes if settings.looks_after(node.labels))
    asked = aws.due(fleet, memory, now)
    listings = client.ask(asked) if client is not None and asked else ()
    return aws.remembered(memory, listings, fleet, settings.sources.aws.every, now)


def _read_clouds(
    node: Node,
    settings: Settings,
    planned: CloudMemory | None,
    scheduled: AwsMemory | None,
    now: datetime,
) -> tuple[Reading, ...]:
    if not settings.looks_after(node.labels):
        return ()
    of_arm = arm.read(node, planned, now) if planned is not None else None
    of_aws = aws.read(node, scheduled, now) if scheduled is not None else None
    return tuple(reading for reading in (of_arm, of_aws) if reading is not None)


def _machines(
    reader: MachineReader | None,
    nodes: tuple[Node, ...],
    readings: Mapping[str, tuple[Reading, ...]],
    records: Mapping[str, Record],
    settings: Settings,
) -> Mapping[str, Machine]:
    """Return what owns the VMs of the nodes that an event has replaced, and of those that we began on."""
    wanted = settings.replaces()
    refs = [
        ref
        for node in nodes
        if settings.looks_after(node.labels)
        and _may_be_replaced(node, readings[node.name], records.get(node.name), settings, wanted=wanted)
        and (ref := machine_of(node)) is not None
    ]
    if reader is None or not refs:
        return {}
    return {machine.ref.node: machine for machine in reader.machines(refs)}


def _may_be_replaced(
    node: Node, readings: tuple[Reading, ...], record: Record | None, settings: Settings, *, wanted: bool
) -> bool:
    kept = [profile for _, profile in record.profiles] if record is not None else []
    if any(profile.replacement is not None for profile in kept):
        return True
    if not wanted:
        return False
    told = [(signal.kind, signal.condition) for reading in readings for signal in reading.signals]
    known = [(event.kind, event.condition) for profile in kept for event in profile.events]
    policies = (settings.policy(kind, condition, node.labels) for kind, condition in (*told, *known))
    return any(policy is not None and policy.replace for policy in policies)


def _asks_for_namespaces(settings: Settings) -> bool:
    chosen = [rule.namespaces for rule in settings.drain.rules]
    return any(isinstance(one, LabelSelector) and not one.selects_all for one in chosen)


def _read(node: Node, settings: Settings, agents: Agents) -> tuple[Reading, ...]:
    sources, prefix = settings.sources, settings.keys.prefix
    readings: list[Reading] = []
    if sources.node_conditions.enabled:
        readings += node_condition.read(node)
    if sources.imds.enabled:
        readings.append(published.read(node, prefix, agents))
    if sources.requests.enabled:
        readings.append(request.read(node, prefix))
    named = settings.condition_types()
    if named:
        readings += node_condition.read_named(node, named)
    return tuple(readings)
