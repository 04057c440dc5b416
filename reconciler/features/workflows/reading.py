"""What checks and triggers of workflows need, and what a pass has read for them: each thing once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from operator import or_
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import astuple

from reconciler.features.workflows.services import (
    SERVICES,
    Hypervisor,
    KubernikusAnswer,
    KubernikusQuery,
    PrometheusAnswer,
    PrometheusQuery,
)
from reconciler.model.errors import ClusterError, Late, Unreachable
from reconciler.model.leases import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.pod import Pod
from reconciler.model.ports import ClusterReader, Outside
from reconciler.model.problems import expected
from reconciler.model.tasks import NotHere
from reconciler.model.values import replace

Answer = TypeVar("Answer")


class Needs(Struct, frozen=True):
    """What a configured check needs beyond the names of the nodes; a pass reads each of them once.

    `labels`, `annotations` and `conditions` are the keys and types that it reads on nodes. `hypervisors` asks
    for all Hypervisor objects.
    """

    leases: frozenset[LeaseRef] = frozenset()
    queries: frozenset[PrometheusQuery] = frozenset()
    all_pods: bool = False
    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    hypervisors: bool = False
    kubernikus: frozenset[KubernikusQuery] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        """Return what both need."""
        return Needs(*map(or_, astuple(self), astuple(other)))


class ReadForChecks(Struct, frozen=True):
    """What was read for the needs of all checks of a pass.

    A Lease that does not exist is None; `unread_leases` says why others could not be read. `pods` are all
    pods, by the name of their node (empty: not scheduled). `unread_pods` says why they could not be read.
    `hypervisors` are all Hypervisor objects by name, `unread_hypervisors` says why they could not be read.
    `kubernikus` are its answers. `found` keeps what follows from the pods alone (`of_pods`).
    """

    leases: Mapping[LeaseRef, LeaseSeen | None] = field(default_factory=dict)
    answers: Mapping[PrometheusQuery, PrometheusAnswer] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    unread_leases: Mapping[LeaseRef, str] = field(default_factory=dict)
    unread_pods: str = "no check has asked for them"
    hypervisors: Mapping[str, Hypervisor] = field(default_factory=dict)
    unread_hypervisors: str = "no check has asked for them"
    kubernikus: Mapping[KubernikusQuery, KubernikusAnswer] = field(default_factory=dict)
    found: dict[Hashable, Any] = field(default_factory=dict)

    def of_pods(self, key: Hashable, compute: Callable[[], Answer]) -> Answer:
        """Return what `compute` returned for this key, which it must depend on, and on the pods alone.

        A check is asked for each node, and a cluster may have a hundred thousand pods.
        """
        if key not in self.found:
            self.found[key] = compute()
        kept: Answer = self.found[key]
        return kept

    def answer(self, query: PrometheusQuery) -> PrometheusAnswer:
        """Return the answer to a query."""
        return self.answers.get(query, PrometheusAnswer(problem="it was not asked"))

    def hypervisor(self, name: str) -> tuple[Hypervisor | None, str]:
        """Return the Hypervisor with this name, or None and the reason."""
        if self.unread_hypervisors:
            return None, f"the Hypervisors can't be read: {self.unread_hypervisors}"
        found = self.hypervisors.get(name)
        return found, "" if found is not None else f"there is no Hypervisor {name}"

    def taken(self, take: LeaseTake) -> ReadForChecks:
        """Return the same with a Lease that a node takes in this pass, so that no other node takes it too."""
        held = LeaseSeen(take.holder, take.at, take.duration)
        return replace(self, leases={**self.leases, take.ref: held})


LEASES = 200
"""Leases that one pass reads, one request each."""


def read_for_checks(outside: Outside, needs: Needs) -> ReadForChecks:
    """Return what the checks need; each thing is read once. Raises nothing."""
    pods, unread_pods = _pods(outside.reader) if needs.all_pods else ({}, ReadForChecks().unread_pods)
    leases, unread_leases = _leases(outside, sorted(needs.leases))
    hypervisors, unread_hypervisors = (
        _hypervisors(outside) if needs.hypervisors else ({}, ReadForChecks().unread_hypervisors)
    )
    answers, sizes = {}, {}
    if needs.queries:
        with suppress(NotHere, Late):
            ask = partial(SERVICES.of(outside.client).prometheus.ask, sorted(needs.queries))
            answers = dict(outside.beside.read(("Prometheus",), ask, most=1))
    if needs.kubernikus:
        with suppress(NotHere, Late):
            count = partial(SERVICES.of(outside.client).kubernikus.ask, sorted(needs.kubernikus))
            sizes = dict(outside.beside.read(("Kubernikus",), count, most=1))
    return ReadForChecks(
        leases, answers, pods, unread_leases, unread_pods, hypervisors, unread_hypervisors, sizes
    )


def _leases(
    outside: Outside, refs: Iterable[LeaseRef]
) -> tuple[dict[LeaseRef, LeaseSeen | None], dict[LeaseRef, str]]:
    found: dict[LeaseRef, LeaseSeen | None] = {}
    unread: dict[LeaseRef, str] = {}
    silent = ""
    for count, ref in enumerate(refs):
        if silent or count >= LEASES:
            unread[ref] = silent or f"a pass reads {LEASES} Leases, and there are more"
            continue
        try:
            read = partial(SERVICES.of(outside.client).lease, ref)
            found[ref] = outside.beside.read(("the Lease", str(ref)), read)
        except ClusterError as error:
            unread[ref] = error.because
            # Each request without an answer takes the whole time for retries.
            silent = unread[ref] if isinstance(error, Unreachable) else ""
    return found, unread


def _pods(reader: ClusterReader) -> tuple[Mapping[str, tuple[Pod, ...]], str]:
    try:
        listed = expected("the pods can't be read for checks", partial(reader.pods, placement=True))
    except ClusterError as error:
        return {}, error.because
    found: dict[str, list[Pod]] = {}
    for pod in listed:
        found.setdefault(pod.node, []).append(pod)
    return {node: tuple(pods) for node, pods in found.items()}, ""


def _hypervisors(outside: Outside) -> tuple[Mapping[str, Hypervisor], str]:
    try:
        listed = outside.beside.read(("Hypervisors",), SERVICES.of(outside.client).hypervisors)
    except ClusterError as error:
        return {}, error.because
    if listed is None:
        return {}, "the cluster has no kind Hypervisor of kvm.cloud.sap/v1"
    return {hypervisor.name: hypervisor for hypervisor in listed}, ""
