"""Observe: read what a pass needs, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from reconciler.machines import registry as machine_providers
from reconciler.model.drains import DrainProgress
from reconciler.model.event import Reading
from reconciler.model.machine import Machine
from reconciler.model.node import READ_LABELS, Node, Wanted
from reconciler.model.outside import Outside
from reconciler.model.pod import Pod
from reconciler.model.polling import AnyMemory, Memory
from reconciler.model.ports import ClusterReader, MachineReader
from reconciler.model.record import Record
from reconciler.model.record_text import record_of
from reconciler.model.selector import LabelSelector
from reconciler.model.snapshot import Agents, Ledger, Remediator, Snapshot
from reconciler.publishing import registry as publishers
from reconciler.settings.schema import Settings
from reconciler.sources import registry as sources
from reconciler.sources.source import SourceContext


def observe(
    outside: Outside,
    settings: Settings,
    now: datetime,
    *,
    drains: Mapping[str, DrainProgress] | None = None,
    capacity: bool = False,
) -> Snapshot:
    """Return the snapshot of one pass; raises ClusterError if the nodes themselves can't be read.

    Pods are read for the nodes that are being drained, with one request each; there are no other requests per
    node. `capacity` keeps what a preview needs to find room on other nodes. Polled sources query their
    services if the settings enable them and the ledger says that a query is due. `now` is aware. Machine
    providers are queried only for nodes that may be replaced.
    """
    reader = outside.reader
    nodes = reader.nodes(wanted(settings, capacity=capacity))
    needed = sources.wants(settings)
    agents = reader.agents() if needed.agents else Agents()
    remediator = reader.remediator() if needed.remediator else Remediator()
    prefix = settings.keys.prefix
    records = {node.name: found for node in nodes if (found := record_of(node, prefix)) is not None}
    readable = {name: one for name, one in records.items() if isinstance(one, Record)}
    objects, problems = publishers.read_objects(reader, settings)
    ledger = reader.ledger()
    memories = _poll(outside, nodes, ledger, readable, settings, now)
    context = SourceContext(settings, now, agents, memories)
    on = sources.switched_on(settings)
    readings = {
        node.name: tuple(reading for source in on for reading in source.read(node, context)) for node in nodes
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
        memories=memories,
        skew=reader.skew(),
        own_node=outside.itself.node,
        own_pod=outside.itself.pod,
        published=objects,
        problems=problems,
        machines=_machines(outside.machines, nodes, readings, readable, settings),
    )


def wanted(settings: Settings, *, capacity: bool = False) -> Wanted:
    """Return which parts of a node these settings need.

    A preview needs all labels, because any of them may matter for a pod's placement.
    """
    of_sources = sources.wants(settings)
    return Wanted(
        # Our signs are read even if they are no longer published, because they are then removed.
        conditions=of_sources.conditions | {"Ready"} | publishers.CONDITIONS,
        annotation_prefix=settings.keys.prefix,
        # A case that has started to replace its machine continues, even if the settings have changed.
        annotations=of_sources.annotations | publishers.ANNOTATIONS | machine_providers.ANNOTATIONS,
        capacity=capacity,
        labels=None if capacity else of_sources.labels | READ_LABELS | settings.label_keys(),
    )


def add_pods(snapshot: Snapshot, reader: ClusterReader, names: Iterable[str]) -> Snapshot:
    """Return the snapshot with everything that a preview of these nodes' drains needs.

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


def _poll(
    outside: Outside,
    nodes: tuple[Node, ...],
    ledger: Ledger,
    records: Mapping[str, Record],
    settings: Settings,
    now: datetime,
) -> dict[str, AnyMemory]:
    """Return the valid answers of each enabled polled source, after the queries that are due."""
    managed = tuple(node for node in nodes if settings.manages(node.labels))
    memories: dict[str, AnyMemory] = {}
    for source in sources.polled():
        if not source.enabled(settings):
            continue
        memory = ledger.memories.get(source.name, Memory())
        followed = {name for name, record in records.items() if source.follows(record)}
        scopes = source.due(managed, memory, now, followed=followed)
        client = outside.clients.get(source.name)
        listings = client.ask(scopes) if client is not None and scopes else ()
        every = source.section(settings).every
        memories[source.name] = source.remembered(memory, listings, managed, every, now)
    return memories


def _machines(
    reader: MachineReader | None,
    nodes: tuple[Node, ...],
    readings: Mapping[str, tuple[Reading, ...]],
    records: Mapping[str, Record],
    settings: Settings,
) -> Mapping[str, Machine]:
    """Return the machines of the nodes that an event replaces, and of those whose replacement has started."""
    wanted = settings.replaces()
    refs = [
        ref
        for node in nodes
        if settings.manages(node.labels)
        and _may_be_replaced(node, readings[node.name], records.get(node.name), settings, wanted=wanted)
        and (ref := machine_providers.machine_of(node)) is not None
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
