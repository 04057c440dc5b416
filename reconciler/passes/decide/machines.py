"""Machines of several nodes: nodes with one VM, pools that are scaled up, and machines that we deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial

from reconciler.model.machine import Machine, Remove, Vm, vm_of
from reconciler.model.node import Node
from reconciler.model.problems import Faults
from reconciler.model.record import CaseRecord
from reconciler.model.snapshot import Replaced
from reconciler.passes.node_facts import NodeFacts, PoolKey, pool_key
from reconciler.profiles.budget import pool_of


def _key(node: Node) -> Vm | str | None:
    # Two spellings of one VM are the same VM.
    return (vm_of(node.provider_id) or node.provider_id.strip().casefold()) if node.provider_id else None


def twins_of(nodes: Iterable[Node], faults: Faults | None = None) -> Mapping[str, str]:
    """Return the names of the nodes whose providerID another node has too, each with one such node's name."""
    faults = Faults() if faults is None else faults
    names: dict[Vm | str, list[str]] = {}
    for node in nodes:
        key = faults.of(node.name, "its VM is not known", partial(_key, node), None)
        if key is not None:
            names.setdefault(key, []).append(node.name)
    found: dict[str, str] = {}
    for together in names.values():
        if len(together) > 1:
            first, second, *_ = sorted(together)
            found |= {name: second if name == first else first for name in together}
    return found


def pools_in_replacement(
    seen: Iterable[NodeFacts], machines: Mapping[str, Machine], faults: Faults
) -> dict[PoolKey, str]:
    """Return the pools that were scaled up for a node that still exists, each with that node."""
    found: dict[PoolKey, str] = {}
    for node in seen:
        key = faults.of(node.name, "its pool is not known", partial(_in_hand, node, machines), None)
        if key is not None:
            found.setdefault(key, node.name)
    return found


def _in_hand(node: NodeFacts, machines: Mapping[str, Machine]) -> PoolKey | None:
    asked = node.case.replacement
    return pool_key(machines.get(node.name)) if asked is not None and asked.wanted is not None else None


def gone_by_us(
    node: Node,
    action: Remove,
    record: CaseRecord,
    nodes: Iterable[Node],
    before: tuple[Replaced, ...],
    now: datetime,
) -> tuple[Replaced, ...]:
    """Return the ledger's replaced nodes once this node's machine is deleted.

    A node whose replacement already exists, because its pool was scaled up first, is not one of them.
    """
    pool, asked = action.machine.pool, record.replacement
    others = tuple(known for known in before if known.uid != node.uid)
    wanted = asked.wanted if asked is not None else None
    if wanted is not None and pool is not None and pool.ready is not None and pool.ready >= wanted:
        return others
    there = [other for other in nodes if pool_of(other) == node.pool]
    uids = {other.uid for other in there}
    missing = sum(1 for other in others if other.pool == node.pool and other.uid not in uids)
    at = now.replace(microsecond=0)
    return (*others, Replaced(node.name, node.uid, node.zone, node.pool, len(there) + missing, at))
