"""What readiness reads: lists of the whole cluster and the ledger, and nothing per node."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec import Struct, field

from reconciler.model.instructions import PersonHold
from reconciler.model.node import POOL_ANNOTATIONS, Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget, Volume
from reconciler.model.ports import ClusterReader, VolumeReader
from reconciler.model.problems import BUDGETS, LEDGER, NAMESPACES, PODS, VOLUMES, Gaps, Unseen
from reconciler.settings.schema import Settings


class Seen(Struct, frozen=True):
    """The cluster as it was read. What may not be read is empty, and in `unseen`.

    `holds` are those of all nodes and of pools.
    """

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    holds: tuple[PersonHold, ...] = ()
    unseen: tuple[Unseen, ...] = ()


def read(reader: ClusterReader, volumes: VolumeReader, settings: Settings) -> Seen:
    """Return what readiness needs of the cluster; raises ClusterError, but not for what we may not read.

    Only the nodes have to be readable.
    """
    gaps = Gaps(rehearsed=True)
    # Any label may matter for the placement of a pod.
    nodes = reader.nodes(
        Wanted(frozenset({"Ready"}), settings.keys.prefix, capacity=True, annotations=POOL_ANNOTATIONS)
    )
    pods = gaps.read(PODS, partial(reader.pods, placement=True), "nothing is known about the workloads")
    budgets = gaps.read(BUDGETS, reader.budgets, "the evictions that they refuse are not known")
    namespaces = gaps.read(
        NAMESPACES, reader.namespaces, "drain.rules that select namespaces by label are not applied"
    )
    found = gaps.read(VOLUMES, volumes.volumes, "where volumes can be mounted is not known")
    ledger = gaps.read(LEDGER, reader.ledger, "holds of all nodes and of pools are not known")
    return Seen(
        nodes=nodes,
        pods=pods or (),
        budgets=budgets or (),
        namespaces=namespaces or {},
        volumes=found or (),
        holds=ledger.holds if ledger is not None else (),
        unseen=tuple(gaps.unseen.values()),
    )
