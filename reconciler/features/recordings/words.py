"""The public words: those that a recording may have, because they say nothing about who sent it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, get_args

from msgspec import Struct, structs

from reconciler.model import node as nodes
from reconciler.model.case_outcome import CaseResult
from reconciler.model.event import Initiator, Status
from reconciler.model.instructions import Permission, PersonHold
from reconciler.model.keys import DEFAULT_PREFIX, keys_of
from reconciler.model.polling import Alone
from reconciler.model.problems import BUDGETS, LEDGER, NAMESPACES, PODS
from reconciler.model.record import Record
from reconciler.model.schedule import CaseForecast
from reconciler.model.selector import Operator
from reconciler.model.unguarded import UnguardedWhy
from reconciler.passes.parts import Parts
from reconciler.profiles.checks import CHECKS
from reconciler.report.kinds import action_kinds, hold_kinds
from reconciler.settings.reference import json_schema
from reconciler.settings.schema import whole_settings

_KUBERNETES = """
    kubernetes.io/hostname kubernetes.io/arch kubernetes.io/config.mirror node.kubernetes.io/instance-type
    topology.kubernetes.io/region kubernetes.io/metadata.name metadata.name app.kubernetes.io/name
    karpenter.sh/do-not-disrupt cluster-autoscaler.kubernetes.io/safe-to-evict on-completion
    node.kubernetes.io/unschedulable node.kubernetes.io/not-ready node.kubernetes.io/unreachable
    node.kubernetes.io/memory-pressure node.kubernetes.io/disk-pressure node.kubernetes.io/pid-pressure
    node.kubernetes.io/network-unavailable system-node-critical system-cluster-critical kube-system
    node-maintenance matchLabels matchExpressions key operator values minAvailable
    NoSchedule NoExecute PreferNoSchedule Equal Exists True False Unknown
    Running Pending Succeeded Failed In NotIn DoesNotExist Gt Lt requests cpu memory ephemeral-storage
    Deployment ReplicaSet StatefulSet DaemonSet Job CronJob ReplicationController Node Pod
    apps/v1 batch/v1 v1 policy/v1
    Ready NotReady KubeletReady KubeletNotReady NodeStatusUnknown MemoryPressure DiskPressure PIDPressure
    NetworkUnavailable KernelDeadlock ReadonlyFilesystem FrequentKubeletRestart FrequentContainerdRestart
    linux windows amd64 arm64 spot regular upgrade Quarantined virtual-kubelet
    AKS Karpenter OpenShift Cluster API MachineSet MachineDeployment MachinePool NodePool agent
    list get watch pods nodes namespaces configmaps poddisruptionbudgets policy daemonsets leases
"""

_PLATFORMS = """
    azure aws subscriptions resourceGroups providers Microsoft.Compute virtualMachineScaleSets virtualMachines
    Microsoft.ContainerService managedClusters Scheduled Started Advisory Completed Canceled Cancelled
    Freeze Reboot Redeploy Preempt Terminate SpotRebalanceRecommendation VirtualMachine
    EventId EventType EventStatus EventSource ResourceType Resources NotBefore Description DurationInSeconds
    VMEventScheduled NoVMEventScheduled NoPreemptionScheduled SpotEvictionIncoming
    version vm events more Events DocumentIncarnation Platform User
    https aka.ms aks scheduledevents aks-spot-eviction
    instance-reboot system-reboot system-maintenance instance-stop instance-retirement
    MaintenanceCompleted RetryLater MaintenanceAborted None Public China USGovernment
    Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday
    Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec GMT UTC UTC+00:00 L W
"""

_TEXTS = """
    a an the of on for from to by in is are was be being has had have no not and or but with without at as
    it its this that because until since which may can can't will would all any other more information see
    host server undergoing maintenance virtual machine paused memory-preserving live migration operation
    requested authorized user scheduled event events VM timeout when running plugin planned restart
    instance hardware degraded underlying failure software update network power node pod pods drain evict
    eviction cordon budget window freeze deadline start starts end ends pool profile person http
    false true null default drained evicted left stays waits agent ready label annotation condition
    date time day days hour hours minute minutes second seconds resource resources requires allows
"""
"""Words of Azure's and AWS's announcements, and of what a record says."""

_FILE = """
    decision settings leftOut answers case managed readings events kind status notBefore sources asksForDrain
    deadline stateBefore state actions holds check until plannedStart latestStart missed forecast outcome
    unguarded pods installed was read lock skip wait keep refuse delete
    at reason scope now workflows asked again found unseen problem alone paused hook record told uid profiles
    id duration version spec template containers hook
"""
"""Keys of the file and of annotations, and words of a decision."""


def public_words(parts: Parts, *documents: type[Struct]) -> frozenset[str]:
    """Return all public words; `documents` are other types whose keys and choices are public."""
    keys = keys_of(DEFAULT_PREFIX)
    types = (
        *documents,
        Record,
        Permission,
        PersonHold,
        Alone,
        *(source.fact for source in parts.sources.polled),
    )
    read = parts.wants(whole_settings()())
    words = {
        *(f"{_KUBERNETES} {_PLATFORMS} {_TEXTS} {_FILE}".split()),
        *nodes.READ_LABELS,
        *nodes.OUT_OF_SERVICE_TAINTS,
        *nodes.POOL_ANNOTATIONS,
        *nodes.UPGRADE_ANNOTATIONS,
        *nodes.LIFECYCLE,
        nodes.CORDON_TAINT,
        nodes.US,
        *read.conditions,
        *read.annotations,
        *read.labels,
        DEFAULT_PREFIX,
        *keys.on_nodes,
        *(key.partition("/")[2] for key in keys.on_nodes),
        *(f"{keys.prefix}/{name}" for name in ("drain", "wait-completed", "restart")),
        *CHECKS,
        *(word for what in (PODS, BUDGETS, NAMESPACES, LEDGER) for word in what.split()),
        *(source.name for source in parts.sources.all),
        *hold_kinds(),
        *action_kinds(),
        *_of_enums(CaseForecast, CaseResult, UnguardedWhy, Operator, Status, Initiator),
        *(word for each in types for word in _of_type(each, set())),
        *_of_schema(json_schema()),
    }
    return frozenset(words)


def _of_enums(*kinds: type[Enum]) -> Iterator[str]:
    for kind in kinds:
        yield from (str(choice.value) for choice in kind)


def _of_type(kind: Any, seen: set[Any]) -> Iterator[str]:
    """Yield the keys and the choices of documents of a type (see model/values.py)."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        yield from _of_enums(kind)
    elif isinstance(kind, type) and issubclass(kind, Struct) and kind not in seen:
        seen.add(kind)
        for field in structs.fields(kind):
            first, *more = field.name.split("_")
            yield from (field.encode_name, "".join((first, *map(str.capitalize, more))))
            yield from _of_type(field.type, seen)
    else:
        for argument in get_args(kind):
            yield from _of_type(argument, seen)


def _of_schema(schema: Any) -> Iterator[str]:
    """Yield the keys and the choices of the settings."""
    if isinstance(schema, list):
        for item in schema:
            yield from _of_schema(item)
    elif isinstance(schema, dict):
        yield from schema.get("properties", {})
        choices: Iterable[object] = (*schema.get("enum", ()), schema.get("const"))
        yield from (choice for choice in choices if isinstance(choice, str))
        for item in schema.values():
            yield from _of_schema(item)
