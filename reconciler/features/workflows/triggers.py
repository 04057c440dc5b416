"""Triggers: what a step of a workflow changes.

A trigger changes values: the node as it should be, and its record. `decide` makes one patch of all changes.
The configuration of a type is a section of the settings, in `reconciler/settings/trigger_types.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.features.workflows.services import HypervisorWrite, Value
from reconciler.features.workflows.situation import WORKFLOWS, Worked, WorkflowSituation, trigger_type
from reconciler.features.workflows.trigger_types import (
    AlterAnnotation,
    AlterFinalizer,
    AlterHypervisor,
    AlterLabel,
    AlterTaint,
    Cordoning,
    Draining,
    Eviction,
    EvictionAction,
)
from reconciler.model.node import Taint, upgrade_of
from reconciler.model.record import Cordon, DrainRecord
from reconciler.model.values import replace


@trigger_type("alterAnnotation", AlterAnnotation)
def alter_annotation(config: AlterAnnotation, situation: WorkflowSituation, work: Worked) -> Worked:
    """Set or remove the annotation."""
    return replace(work, node=replace(work.node, annotations=_altered(work.node.annotations, config)))


def _altered(before: Mapping[str, str], config: AlterAnnotation | AlterLabel) -> dict[str, str]:
    kept = {key: value for key, value in before.items() if key != config.key}
    return kept if config.remove else {**kept, config.key: config.value}


@trigger_type("alterFinalizer", AlterFinalizer)
def alter_finalizer(config: AlterFinalizer, situation: WorkflowSituation, work: Worked) -> Worked:
    """Add or remove the finalizer. All others stay, in their order."""
    before = work.node.finalizers
    after = tuple(one for one in before if one != config.key)
    if not config.remove:
        after = before if config.key in before else (*before, config.key)
    return replace(work, node=replace(work.node, finalizers=after))


def _missing(_config: AlterHypervisor, situation: WorkflowSituation, work: Worked) -> str:
    """Return why the Hypervisor can't be changed: without it the chain does not begin."""
    return situation.read.hypervisor(work.node.name)[1]


@trigger_type("alterHypervisor", AlterHypervisor, missing=_missing)
def alter_hypervisor(config: AlterHypervisor, situation: WorkflowSituation, work: Worked) -> Worked:
    """Set the fields that have other values. A chain that waits runs again, and then writes nothing."""
    found, why = situation.read.hypervisor(work.node.name)
    if found is None:
        return replace(work, waits=why)
    wanted: dict[str, Value] = {}
    for task in work.tasks:
        wanted |= task.fields if isinstance(task, HypervisorWrite) else {}
    wanted |= config.fields
    fields = {key: value for key, value in wanted.items() if found.spec[key] != value}
    others = tuple(task for task in work.tasks if not isinstance(task, HypervisorWrite))
    write = (HypervisorWrite(found.name, found.uid, fields),) if fields else ()
    return replace(work, tasks=(*others, *write))


@trigger_type("alterLabel", AlterLabel)
def alter_label(config: AlterLabel, situation: WorkflowSituation, work: Worked) -> Worked:
    """Set or remove the label."""
    return replace(work, node=replace(work.node, labels=_altered(work.node.labels, config)))


def cordoned(situation: WorkflowSituation, work: Worked) -> Worked:
    """Cordon the node. A cordon that is there is shared, and a foreign one stays after us (law 2)."""
    node, record = work.node, work.record
    whose = Cordon.OURS
    if record.cordon is not None and node.unschedulable:
        whose = record.cordon.whose
    elif node.unschedulable and not situation.taken_over:
        whose = Cordon.FOREIGN
    return replace(
        work,
        node=replace(node, unschedulable=True),
        record=record.cordoned(whose, situation.claim, situation.second),
    )


WAITS = "the node is being drained"


def drained(situation: WorkflowSituation, work: Worked) -> Worked:
    """Drain the node, and cordon it first (law 1). It waits until the drain is done.

    The drain of another profile, or of a person, is shared. A drain of an earlier run of the profile is over.
    """
    work = cordoned(situation, work)
    before = work.record.drain
    found = before.drain if before is not None else None
    mine = before is not None and situation.claim in before.claims
    again = found is None or (mine and found.done is not None and not situation.resumed)
    kept = DrainRecord(situation.second) if again or found is None else found
    record = work.record.drained(kept, situation.claim)
    return replace(work, record=record, waits="" if kept.done is not None else WAITS)


def upgrade(_config: object, situation: WorkflowSituation, work: Worked) -> str:
    """Return that AKS upgrades the node: it drains it by itself, and uncordons it afterwards."""
    node = work.node
    return upgrade_of(node.agent_pool) if node.in_upgrade else ""


def uncordoned(situation: WorkflowSituation, work: Worked) -> Worked:
    """Uncordon the node, unless another claim is left or the cordon is recorded as foreign (law 2)."""
    node, before = work.node, work.record
    after = before.uncordoned(situation.claim).undrained(situation.claim)
    # A cordon without a record is one of maintenance-controller, in a cluster that has moved over.
    undo = before.cordon is None or (after.cordon is None and before.cordon.whose.may_be_undone)
    return replace(work, node=replace(node, unschedulable=False) if undo else node, record=after)


def _eviction_missing(config: Eviction, situation: WorkflowSituation, work: Worked) -> str:
    return upgrade(config, situation, work) if config.action is EvictionAction.UNCORDON else ""


@trigger_type("eviction", Eviction, missing=_eviction_missing)
def eviction(config: Eviction, situation: WorkflowSituation, work: Worked) -> Worked:
    """Do what the configuration says."""
    match config.action:
        case EvictionAction.CORDON:
            return cordoned(situation, work)
        case EvictionAction.UNCORDON:
            return uncordoned(situation, work)
        case EvictionAction.DRAIN:
            return drained(situation, work)


@trigger_type("cordon", Cordoning)
def _cordon(_config: Cordoning, situation: WorkflowSituation, work: Worked) -> Worked:
    return cordoned(situation, work)


@trigger_type("drain", Draining)
def _drain(_config: Draining, situation: WorkflowSituation, work: Worked) -> Worked:
    return drained(situation, work)


@trigger_type("uncordon", Cordoning, missing=upgrade)
def _uncordon(_config: Cordoning, situation: WorkflowSituation, work: Worked) -> Worked:
    return uncordoned(situation, work)


@trigger_type("taint", AlterTaint)
def taint(config: AlterTaint, situation: WorkflowSituation, work: Worked) -> Worked:
    """Set or remove the taint with this key and effect. All others stay, in their order."""
    before = work.node.taints
    wanted = Taint(config.key, config.value, config.effect.value)
    if not config.remove and wanted in before:
        return work
    kept = tuple(one for one in before if (one.key, one.effect) != (wanted.key, wanted.effect))
    after = kept if config.remove else (*kept, wanted)
    return replace(work, node=replace(work.node, taints=after))


TRIGGER_TYPES = WORKFLOWS.triggers
