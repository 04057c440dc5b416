"""Nodes as AKS shapes them, and many of them at once."""

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.controlplane.api import Api
from tests.support.controlplane.configuration import KWOK_NODE

Object = dict[str, Any]

REGION = "westeurope"
RESOURCE_GROUP = f"mc_rg-shop_shop_{REGION}"  # a node's providerID has it in lower case
CLUSTER_ID = "12345678"
_SUBSCRIPTION = "8ecadfc9-d1a3-4ea4-b844-0d9f87e4d7c8"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_MORE_INFORMATION = "For more information, see https://aka.ms/aks/scheduledevents."


@dataclass(frozen=True, slots=True)
class Pool:
    """A node pool on a uniform scale set."""

    name: str
    spot: bool = False
    windows: bool = False

    @property
    def scale_set(self) -> str:
        """Its VMSS; AKS keeps Windows computer names within 15 characters."""
        return f"aks{self.name}" if self.windows else f"aks-{self.name}-{CLUSTER_ID}-vmss"

    def node_name(self, instance: int) -> str:
        """The VM's computer name: the instance in base 36, six digits."""
        digits = ""
        for _ in range(6):
            instance, digit = divmod(instance, 36)
            digits = _BASE36[digit] + digits
        return self.scale_set + digits

    def vm_name(self, instance: int) -> str:
        """As scheduled events name it."""
        return f"{self.scale_set}_{instance}"

    def provider_id(self, instance: int) -> str:
        """As the cloud provider writes it: the instance in decimal."""
        return (
            f"azure:///subscriptions/{_SUBSCRIPTION}/resourceGroups/{RESOURCE_GROUP}/providers/Microsoft.Compute"
            f"/virtualMachineScaleSets/{self.scale_set}/virtualMachines/{instance}"
        )

    def node(self, instance: int, *, zones: Sequence[str] = ("1", "2", "3"), **shape: Any) -> Object:
        """Its node of that number, zones by turns; `shape` as `node` takes it."""
        return node(
            self.node_name(instance),
            self.name,
            f"{REGION}-{zones[instance % len(zones)]}",
            self.provider_id(instance),
            spot=self.spot,
            windows=self.windows,
            **shape,
        )


def node(
    name: str,
    pool: str,
    zone: str,
    provider_id: str,
    *,
    images: int = 50,
    spot: bool = False,
    windows: bool = False,
    ready: bool = True,
    conditions: Iterable[Object] = (),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    taints: Iterable[Object] = (),
    unschedulable: bool = False,
    now: datetime | None = None,
) -> Object:
    """A whole node, status included (the API server takes it at creation, as from a kubelet).

    `conditions` replace those of their type. kwok manages it: pods on it run.
    """
    now = now or datetime.now(UTC)
    every_taint = [*taints]
    if spot:
        every_taint.append(
            {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}
        )
    spec: Object = {"providerID": provider_id, "taints": every_taint}
    if unschedulable:
        spec["unschedulable"] = True
    room = {"cpu": "8", "memory": "32863924Ki", "ephemeral-storage": "129886128Ki", "pods": "250"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**_labels(name, pool, zone, spot=spot, windows=windows), **(labels or {})},
            "annotations": {**_annotations(name), **(annotations or {})},
        },
        "spec": spec,
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": _address(name)},
                {"type": "Hostname", "address": name},
            ],
            "capacity": room,
            "allocatable": {**room, "cpu": "7820m", "memory": "30210804Ki"},
            "conditions": _conditions(now, conditions, ready=ready, windows=windows),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": _images(images),
            "nodeInfo": _node_info(name, windows=windows),
        },
    }


def condition(
    kind: str,
    status: str,
    reason: str,
    message: str,
    *,
    now: datetime | None = None,
    since: timedelta = timedelta(hours=3),
) -> Object:
    """A node condition with a heartbeat now that has been as it is for a while."""
    now = now or datetime.now(UTC)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": _moment(now),
        "lastTransitionTime": _moment(now - since),
    }


def vm_event(
    kind: str = "Reboot",
    not_before: datetime | None = None,
    *,
    status: str = "Scheduled",
    duration: int = -1,
    description: str = "Host server is undergoing maintenance.",
    event_id: str | None = None,
    now: datetime | None = None,
) -> Object:
    """VMEventScheduled=True, worded as node-problem-detector does (a Started event has no `not_before`)."""
    when = not_before.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT") if not_before else ""
    head = f"{kind} {status}: {when}." if when and status == "Scheduled" else f"{kind} {status}."
    message = f"{head} DurationInSeconds: {duration}. {description} {_MORE_INFORMATION}"
    if event_id is not None:
        message += f" EventId: {event_id}"
    return condition(
        "VMEventScheduled", "True", "VMEventScheduled", message, now=now, since=timedelta(seconds=0)
    )


def no_vm_event(*, now: datetime | None = None) -> Object:
    """VMEventScheduled=False."""
    return condition("VMEventScheduled", "False", "NoVMEventScheduled", "VM has no scheduled event", now=now)


def patch_conditions(api: Api, node_name: str, *conditions: Object) -> Object:
    """Set these, leave the other types as they are: what node-problem-detector does."""
    body = {"status": {"conditions": list(conditions)}}
    return api.patch("nodes", node_name, body, kind="strategic", subresource="status")


def fill(
    kubeconfig: Path | str,
    *,
    nodes: int,
    in_flight: int = 48,
    pools: Sequence[Pool] = (Pool("np"),),
    **shape: Any,
) -> list[str]:
    """Create so many nodes, pools and zones by turns; their names."""
    with Api(kubeconfig, user_agent="tests-fill", connections=in_flight) as api:

        def create(number: int) -> str:
            instance, pool = divmod(number, len(pools))
            made = api.create("nodes", pools[pool].node(instance, **shape))
            return str(made["metadata"]["name"])

        with ThreadPoolExecutor(max_workers=in_flight) as threads:
            return list(threads.map(create, range(nodes)))


def _labels(name: str, pool: str, zone: str, *, spot: bool, windows: bool) -> dict[str, str]:
    system = "windows" if windows else "linux"
    machine = "Standard_D8s_v5"
    labels = {
        "agentpool": pool,
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": machine,
        "beta.kubernetes.io/os": system,
        "failure-domain.beta.kubernetes.io/region": REGION,
        "failure-domain.beta.kubernetes.io/zone": zone,
        "kubernetes.azure.com/agentpool": pool,
        "kubernetes.azure.com/cluster": RESOURCE_GROUP,
        "kubernetes.azure.com/consolidated-additional-properties": "34fd0c52-8f0d-11f0-b6f4-6e0d1e5d8a4b",
        "kubernetes.azure.com/kubelet-identity-client-id": "c2bd4b0f-6a3e-4b7c-9f67-6a6c0a1c94d5",
        "kubernetes.azure.com/mode": "user",
        "kubernetes.azure.com/node-image-version": "AKSWindows-2022-containerd-20348.4294.251014"
        if windows
        else "AKSUbuntu-2204gen2containerd-202510.19.0",
        "kubernetes.azure.com/nodepool-type": "VirtualMachineScaleSets",
        "kubernetes.azure.com/os-sku": "Windows2022" if windows else "Ubuntu",
        "kubernetes.azure.com/role": "agent",
        "kubernetes.azure.com/storageprofile": "managed",
        "kubernetes.azure.com/storagetier": "Premium_LRS",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": system,
        "kubernetes.io/role": "agent",
        "node-role.kubernetes.io/agent": "",
        "node.kubernetes.io/instance-type": machine,
        "storageprofile": "managed",
        "storagetier": "Premium_LRS",
        "topology.disk.csi.azure.com/zone": zone,
        "topology.kubernetes.io/region": REGION,
        "topology.kubernetes.io/zone": zone,
    }
    if spot:
        labels["kubernetes.azure.com/scalesetpriority"] = "spot"
    return labels


def _annotations(name: str) -> dict[str, str]:
    key, value = KWOK_NODE
    return {
        key: value,
        "alpha.kubernetes.io/provided-node-ip": _address(name),
        "csi.volume.kubernetes.io/nodeid": f'{{"disk.csi.azure.com":"{name}","file.csi.azure.com":"{name}"}}',
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }


def _conditions(now: datetime, overrides: Iterable[Object], *, ready: bool, windows: bool) -> list[Object]:
    listed = [] if windows else [no_vm_event(now=now), *_problem_detector(now)]
    listed += [
        condition(
            "MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory", now=now
        ),
        condition(
            "DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure", now=now
        ),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID", now=now),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", now=now)
        if ready
        else condition("Ready", "False", "KubeletNotReady", "container runtime is down", now=now),
    ]
    by_type = {each["type"]: each for each in listed}
    by_type.update({each["type"]: each for each in overrides})
    return list(by_type.values())


def _problem_detector(now: datetime) -> list[Object]:
    """What node-problem-detector of AKS's Linux extension says of a healthy node."""
    healthy = (
        ("KernelDeadlock", "KernelHasNoDeadlock", "kernel has no deadlock"),
        ("ReadonlyFilesystem", "FilesystemIsNotReadOnly", "Filesystem is not read-only"),
        ("FilesystemCorruptionProblem", "FilesystemIsOK", "Filesystem is healthy"),
        ("KubeletProblem", "KubeletIsUp", "kubelet service is up"),
        ("ContainerRuntimeProblem", "ContainerRuntimeIsUp", "container runtime service is up"),
        ("FrequentKubeletRestart", "NoFrequentKubeletRestart", "kubelet is functioning properly"),
        ("FrequentDockerRestart", "NoFrequentDockerRestart", "docker is functioning properly"),
        ("FrequentContainerdRestart", "NoFrequentContainerdRestart", "containerd is functioning properly"),
        ("FrequentUnregisterNetDevice", "NoFrequentUnregisterNetDevice", "node is functioning properly"),
    )
    return [condition(kind, "False", reason, message, now=now) for kind, reason, message in healthy]


@cache
def _images(count: int) -> list[Object]:
    return [_image(number) for number in range(count)]


def _image(number: int) -> Object:
    """Three names each, of the lengths found on real nodes."""
    part = ("kubernetes", "csi-components", "monitoring", "networking", "workload-identity")[number % 5]
    repository = f"registry.example/oss/v2/azure-managed-services/{part}/component-image-{number:02d}"
    digest = hashlib.sha256(repository.encode()).hexdigest()
    tags = (f"v1.{number}.3-2025101{number % 10}", f"v1.{number}.2-2025092{number % 10}")
    return {
        "names": [f"{repository}@sha256:{digest}", *(f"{repository}:{tag}" for tag in tags)],
        "sizeBytes": 34_000_000 + number * 7_654_321,
    }


def _node_info(name: str, *, windows: bool) -> Object:
    unique = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    identity = f"{unique[:8]}-{unique[8:12]}-{unique[12:16]}-{unique[16:20]}-{unique[20:]}"
    return {
        "architecture": "amd64",
        "bootID": identity,
        "containerRuntimeVersion": "containerd://1.7.28-2",
        "kernelVersion": "10.0.20348.4294" if windows else "5.15.0-1096-azure",
        "kubeProxyVersion": "",
        "kubeletVersion": "v1.36.3",
        "machineID": unique,
        "operatingSystem": "windows" if windows else "linux",
        "osImage": "Windows Server 2022 Datacenter" if windows else "Ubuntu 22.04.5 LTS",
        "systemUUID": identity,
    }


def _address(name: str) -> str:
    low, high = hashlib.md5(name.encode(), usedforsecurity=False).digest()[:2]
    return f"10.224.{high}.{low}"


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
