"""Triggers: what a step of a workflow changes."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.model.node import Taint
from reconciler.model.record import Cordon, DrainRecord
from reconciler.model.values import replace
from reconciler.model.workflow import HypervisorWrite, upgrade_of
from reconciler.settings.sections.trigger_types import (
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


@trigger_type("alterAnnotation", AlterAnnotation)
def alter_annotation(config: AlterAnnotation, given: TriggerInput) -> Worked:
    """Set or remove the annotation."""
    annotations = {key: text for key, text in given.work.node.annotations.items() if key != config.key}
    if not config.remove:
        annotations[config.key] = config.value
    return replace(given.work, node=replace(given.work.node, annotations=annotations))


@trigger_type("alterFinalizer", AlterFinalizer)
def alter_finalizer(config: AlterFinalizer, given: TriggerInput) -> Worked:
    """Add or remove the finalizer. All others stay, in their order."""
    before = given.work.node.finalizers
    after = tuple(one for one in before if one != config.key)
    if not config.remove:
        after = before if config.key in before else (*before, config.key)
    return replace(given.work, node=replace(given.work.node, finalizers=after))


def _missing(config: AlterHypervisor, given: TriggerInput) -> str:
    """Return why the Hypervisor can't be changed: without it the chain does not begin."""
    del config
    return given.read.hypervisor(given.work.node.name)[1]


@trigger_type("alterHypervisor", AlterHypervisor, _missing)
def alter_hypervisor(config: AlterHypervisor, given: TriggerInput) -> Worked:
    """Set the fields that have other values. A chain that waits runs again, and then writes nothing."""
    found, why = given.read.hypervisor(given.work.node.name)
    if found is None:
        return replace(given.work, waits=why)
    before = given.work.hypervisor.fields if given.work.hypervisor is not None else {}
    wanted = {**before, **config.fields}
    fields = {key: value for key, value in wanted.items() if found.spec[key] != value}
    write = HypervisorWrite(found.name, found.uid, fields) if fields else None
    return replace(given.work, hypervisor=write)


@trigger_type("alterLabel", AlterLabel)
def alter_label(config: AlterLabel, given: TriggerInput) -> Worked:
    """Set or remove the label."""
    labels = {key: value for key, value in given.work.node.labels.items() if key != config.key}
    if not config.remove:
        labels[config.key] = config.value
    return replace(given.work, node=replace(given.work.node, labels=labels))


@trigger_type("cordon", Cordoning)
def cordon(config: Cordoning, given: TriggerInput) -> Worked:
    """Cordon the node. A cordon that is there is shared, and a foreign one stays after us (law 2)."""
    del config
    return cordoned(given)


def cordoned(given: TriggerInput) -> Worked:
    """Return the work with the node cordoned for the profile."""
    node, record = given.work.node, given.work.record
    whose = Cordon.OURS
    if record.cordon is not None and node.unschedulable:
        whose = record.cordon.whose
    elif node.unschedulable and not given.taken_over:
        whose = Cordon.FOREIGN
    return replace(
        given.work,
        node=replace(node, unschedulable=True),
        record=record.cordoned(whose, given.claim, given.now),
    )


WAITS = "the node is being drained"


@trigger_type("drain", Draining)
def drain(config: Draining, given: TriggerInput) -> Worked:
    """Drain the node, and cordon it first (law 1)."""
    del config
    return drained(given)


def drained(given: TriggerInput) -> Worked:
    """Return the work with the node drained for the profile, or with the reason to wait for that.

    The drain of another profile, or of a person, is shared. A drain of an earlier run of the profile is over.
    """
    work = cordoned(given)
    before = work.record.drain
    found = before.drain if before is not None else None
    mine = before is not None and given.claim in before.claims
    again = found is None or (mine and found.done is not None and not given.resumed)
    kept = DrainRecord(given.now) if again or found is None else found
    record = work.record.drained(kept, given.claim)
    return replace(work, record=record, waits="" if kept.done is not None else WAITS)


def upgrade(config: object, given: TriggerInput) -> str:
    """Return that AKS upgrades the node: it drains it by itself, and uncordons it afterwards."""
    del config
    node = given.work.node
    return upgrade_of(node.agent_pool) if node.in_upgrade else ""


@trigger_type("uncordon", Cordoning, upgrade)
def uncordon(config: Cordoning, given: TriggerInput) -> Worked:
    """Uncordon the node, unless another claim is left or the cordon is recorded as foreign (law 2)."""
    del config
    return uncordoned(given)


def uncordoned(given: TriggerInput) -> Worked:
    """Return the work without the profile's claims on the cordon and the drain."""
    node, before = given.work.node, given.work.record
    after = before.uncordoned(given.claim).undrained(given.claim)
    # A cordon without a record is one of maintenance-controller, in a cluster that has moved over.
    undo = before.cordon is None or (after.cordon is None and before.cordon.whose.may_be_undone)
    return replace(
        given.work,
        node=replace(node, unschedulable=False) if undo else node,
        record=after,
    )


def _eviction_missing(config: Eviction, given: TriggerInput) -> str:
    return upgrade(config, given) if config.action is EvictionAction.UNCORDON else ""


@trigger_type("eviction", Eviction, _eviction_missing)
def eviction(config: Eviction, given: TriggerInput) -> Worked:
    """Do what the configuration says."""
    match config.action:
        case EvictionAction.CORDON:
            return cordoned(given)
        case EvictionAction.UNCORDON:
            return uncordoned(given)
        case EvictionAction.DRAIN:
            return drained(given)


@trigger_type("taint", AlterTaint)
def taint(config: AlterTaint, given: TriggerInput) -> Worked:
    """Set or remove the taint with this key and effect. All others stay, in their order."""
    before = given.work.node.taints
    wanted = Taint(config.key, config.value, config.effect.value)
    if not config.remove and wanted in before:
        return given.work
    kept = tuple(one for one in before if (one.key, one.effect) != (wanted.key, wanted.effect))
    after = kept if config.remove else (*kept, wanted)
    return replace(given.work, node=replace(given.work.node, taints=after))
