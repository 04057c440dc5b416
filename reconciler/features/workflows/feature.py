"""What workflows give to a pass. Without workflows in the settings, nothing else of this folder is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from reconciler.features.workflows.holds import HOLDS
from reconciler.features.workflows.settings import PROFILES
from reconciler.model.errors import ClusterError, Late, Unreachable
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.ports import ClusterReader, Outside
from reconciler.model.problems import internal
from reconciler.model.workflow import (
    CHANGE_HYPERVISOR,
    TAKE_LEASE,
    Hypervisor,
    LeaseRef,
    LeaseSeen,
    Needs,
    ReadForChecks,
)
from reconciler.passes.node_facts import Decider, NodeFacts, PassContext
from reconciler.passes.plugin import Deciding, Feature, Wants
from reconciler.settings.schema import Settings


def _needs(settings: Settings) -> Needs:
    if not PROFILES.of(settings).on:
        return Needs()
    from reconciler.features.workflows.configured import workflows_of

    return workflows_of(PROFILES.of(settings)).needs


def _reads(settings: Settings) -> Wants:
    needs = _needs(settings)
    return Wants(conditions=needs.conditions, annotations=needs.annotations, labels=needs.labels)


def _read_checks(outside: Outside, settings: Settings) -> ReadForChecks:
    return read_for_checks(outside, _needs(settings))


def _decide(nodes: Sequence[NodeFacts], context: PassContext) -> Decider:
    # A record may be left of workflows that the settings had before.
    if not PROFILES.of(context.settings).on and not any(
        node.record and node.record.workflows for node in nodes
    ):
        return Decider()
    from reconciler.features.workflows.decide import NodeWorkflows

    return NodeWorkflows(nodes, context)


def _settled(settings: Settings) -> Callable[[Node], bool] | None:
    if not PROFILES.of(settings).on:
        return None
    from reconciler.features.workflows.settled import settled

    return settled(settings)


FEATURE = Feature(
    "workflows",
    HOLDS,
    (TAKE_LEASE, CHANGE_HYPERVISOR),
    reads=_reads,
    read_checks=_read_checks,
    decide=Deciding(_decide, _settled),
)


LEASES = 200
"""Leases that one pass reads, one request each."""


def read_for_checks(outside: Outside, needs: Needs) -> ReadForChecks:
    """Return what the checks need; each thing is read once. Raises nothing."""
    leases, unread = _leases(outside.reader, sorted(needs.leases))
    pods, problem = _pods(outside.reader) if needs.all_pods else ({}, ReadForChecks().unread_pods)
    answers, sizes = {}, {}
    if needs.queries and outside.prometheus is not None:
        with suppress(Late):
            ask = partial(outside.prometheus.ask, sorted(needs.queries))
            answers = dict(outside.beside.read(("Prometheus",), ask, most=1))
    hypervisors, unlisted = (
        _hypervisors(outside.reader) if needs.hypervisors else ({}, ReadForChecks().unread_hypervisors)
    )
    if needs.kubernikus and outside.kubernikus is not None:
        with suppress(Late):
            count = partial(outside.kubernikus.ask, sorted(needs.kubernikus))
            sizes = dict(outside.beside.read(("Kubernikus",), count, most=1))
    return ReadForChecks(leases, answers, pods, unread, problem, hypervisors, unlisted, sizes)


def _leases(
    reader: ClusterReader, refs: Iterable[LeaseRef]
) -> tuple[dict[LeaseRef, LeaseSeen | None], dict[LeaseRef, str]]:
    found: dict[LeaseRef, LeaseSeen | None] = {}
    unread: dict[LeaseRef, str] = {}
    silent = ""
    for count, ref in enumerate(refs):
        if silent or count >= LEASES:
            unread[ref] = silent or f"a pass reads {LEASES} Leases, and there are more"
            continue
        try:
            found[ref] = reader.lease(ref)
        except Exception as error:  # noqa: BLE001 - one Lease's data harms that Lease only
            unread[ref] = _why(error, f"the Lease {ref} can't be read")
            # Each request without an answer takes the whole time for retries.
            silent = unread[ref] if isinstance(error, Unreachable) else ""
    return found, unread


def _pods(reader: ClusterReader) -> tuple[Mapping[str, tuple[Pod, ...]], str]:
    try:
        listed = reader.pods(placement=True)
    except Exception as error:  # noqa: BLE001 - what is in pods harms the checks that need them
        return {}, _why(error, "the pods can't be read for checks")
    found: dict[str, list[Pod]] = {}
    for pod in listed:
        found.setdefault(pod.node, []).append(pod)
    return {node: tuple(pods) for node, pods in found.items()}, ""


def _hypervisors(reader: ClusterReader) -> tuple[Mapping[str, Hypervisor], str]:
    try:
        listed = reader.hypervisors()
    except Exception as error:  # noqa: BLE001 - what is in Hypervisors harms the workflows that use them
        return {}, _why(error, "the Hypervisors can't be read")
    if listed is None:
        return {}, "the cluster has no kind Hypervisor of kvm.cloud.sap/v1"
    return {one.name: one for one in listed}, ""


def _why(error: Exception, what: str) -> str:
    """Return why something can't be read; `what` says what, for an error in this program."""
    if isinstance(error, ClusterError):
        return f"needs {error.needs}" if error.needs else str(error)
    return internal(what, error)
