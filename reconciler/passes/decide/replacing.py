"""Replacements across nodes: which pools are scaled up already, and which machines we deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial

from reconciler.model.machine import Machine, Remove
from reconciler.model.node import Node
from reconciler.model.problems import Faults
from reconciler.model.record import CaseRecord
from reconciler.model.snapshot import Replaced
from reconciler.passes.decide.seen import Seen
from reconciler.profiles.budget import pool_of

PoolKey = tuple[str, str, str, str]
"""The provider, kind, namespace and name of a pool."""


def pool_key(machine: Machine | None) -> PoolKey | None:
    """Return what identifies the machine's pool, None if the pool is unknown."""
    if machine is None or machine.pool is None:
        return None
    return (machine.ref.provider, machine.pool.kind, machine.pool.namespace, machine.pool.name)


def pools_in_replacement(
    seen: Iterable[Seen], machines: Mapping[str, Machine], faults: Faults
) -> dict[PoolKey, str]:
    """Return the pools that were scaled up for a node that still exists, each with that node."""
    found: dict[PoolKey, str] = {}
    for one in seen:
        key = faults.of(one.node.name, "its pool is not known", partial(_in_hand, one, machines), None)
        if key is not None:
            found.setdefault(key, one.node.name)
    return found


def _in_hand(one: Seen, machines: Mapping[str, Machine]) -> PoolKey | None:
    asked = one.case.replacement
    return pool_key(machines.get(one.node.name)) if asked is not None and asked.wanted is not None else None


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
    others = tuple(one for one in before if one.uid != node.uid)
    wanted = asked.wanted if asked is not None else None
    if wanted is not None and pool is not None and pool.ready is not None and pool.ready >= wanted:
        return others
    there = [one for one in nodes if pool_of(one) == node.pool]
    uids = {one.uid for one in there}
    missing = sum(1 for one in others if one.pool == node.pool and one.uid not in uids)
    at = now.replace(microsecond=0)
    return (*others, Replaced(node.name, node.uid, node.zone, node.pool, len(there) + missing, at))
