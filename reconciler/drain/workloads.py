"""Whose a pod is: its top controller, by the names that Kubernetes gives, and the group that it works in.

The loss of one pod of a group disrupts them all, also on other nodes. Sources of the labels:

- JobSet: kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go. By default it recreates all its Jobs
  when one of them fails.
- LeaderWorkerSet: kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go. By default
  (RecreateGroupOnPodRestart) it recreates the pods of a group when one of them is recreated. Its groups do
  not depend on each other.
- PodGroup of the scheduler plugins (coscheduling): kubernetes-sigs/scheduler-plugins, apis/scheduling.
- Pod groups of Kueue: kubernetes-sigs/kueue, pkg/controller/jobs/pod/constants.
- Jobs of Volcano: volcano.sh/apis, pkg/apis/batch/v1alpha1. A PodGroup of Volcano is named in an annotation,
  by which no list can be asked for.

A person who may create pods can write these labels. They bring a start forward, and never put one off. They
count only on a node whose drain moves pods of one namespace, so that nobody moves the pods of others by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reconciler.model import limits
from reconciler.model.findings import Workload
from reconciler.model.pod import Pod

_JOB_SET = "jobset.sigs.k8s.io/jobset-name"
_LEADER_WORKER_SET = "leaderworkerset.sigs.k8s.io/name"
_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"

_KINDS = {
    _LEADER_WORKER_SET: "LeaderWorkerSet",
    _JOB_SET: "JobSet",
    "scheduling.x-k8s.io/pod-group": "PodGroup",
    "kueue.x-k8s.io/pod-group-name": "pod group",
    "volcano.sh/job-name": "Volcano Job",
}

GROUP_LABELS = tuple(_KINDS)
"""The labels by which pods belong to a group, the one that counts first."""

MOST = 100
"""Groups of one node that are kept."""

_SHOWN = 5


def group_of(pod: Pod) -> str:
    """Return the group of a pod for people (`JobSet shop/train`), empty if it is in none.

    A pod that has ended or is being deleted, and one of a DaemonSet or of a kubelet, is in none: a drain does
    not disrupt its group.
    """
    if not _is_moved(pod):
        return ""
    for key, kind in _KINDS.items():
        name = pod.labels.get(key)
        if name:
            index = pod.labels.get(_GROUP_INDEX, "") if key == _LEADER_WORKER_SET else ""
            return f"{kind} {pod.namespace}/{name}{f' group {index}' if index else ''}"
    return ""


def disrupted(going: Iterable[Pod], pods: Iterable[Pod], node: str) -> tuple[str, ...]:
    """Return a sentence for each group that loses one of the pods that go, and has pods on other nodes.

    `pods` are those of the whole cluster, `node` is the one that the pods leave.
    """
    found: dict[str, set[str]] = {group: set() for pod in going if (group := group_of(pod))}
    if not found:
        return ()
    for pod in pods:
        if pod.node and pod.node != node and (group := group_of(pod)) in found:
            found[group].add(pod.node)
    elsewhere = sorted((group, sorted(nodes)) for group, nodes in found.items() if nodes)
    return tuple(f"{group} also runs on {_named(nodes)}" for group, nodes in elsewhere)


def _named(nodes: list[str]) -> str:
    more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
    return ", ".join(nodes[:_SHOWN]) + more


def in_one_namespace(pods: Iterable[Pod]) -> bool:
    """Return whether a drain moves pods of one namespace at most, of these pods of a node."""
    return len({pod.namespace for pod in pods if _is_moved(pod)}) <= 1


def _is_moved(pod: Pod) -> bool:
    if pod.finished or pod.mirror or pod.deleting_until is not None:
        return False
    return pod.owner is None or pod.owner.kind not in ("DaemonSet", "Node")


_HASHES = (("pod-template-hash", "Deployment"), ("rollouts-pod-template-hash", "Rollout"))
"""The label with the end of a ReplicaSet's name, and the kind that creates such ReplicaSets."""

_OF_CRON_JOB = re.compile(r"(.+)-(\d{8})")
_MINUTES = range(25_000_000, 70_000_000)
"""Minutes since 1970 in the years 2017 to 2103: the end of the names of a CronJob's Jobs."""

_KIND = 63
"""Characters: the longest kind of an object. A reference can name any text."""

_RUN_ONCE = frozenset({"", "Job", "CronJob"})
_ON_EVERY_NODE = frozenset({"DaemonSet", "Node"})


def workload_of(pod: Pod) -> Workload:
    """Return the workload of a pod. All pods of a namespace without a controller are one workload.

    Neither ReplicaSets nor Jobs are read: a Deployment and a CronJob are known by how they name what they
    create. The result is for people; it proves no ownership.
    """
    owner = pod.owner
    if owner is None:
        return Workload(pod.namespace, "", "")
    if owner.is_a("ReplicaSet", "apps"):
        for label, kind in _HASHES:
            end = f"-{pod.labels.get(label, '')}"
            if len(owner.name) > len(end) > 1 and owner.name.endswith(end):
                return Workload(pod.namespace, kind, owner.name.removesuffix(end))
    if owner.is_a("Job", "batch"):
        parts = _OF_CRON_JOB.fullmatch(owner.name)
        if parts is not None and int(parts[2]) in _MINUTES:
            return Workload(pod.namespace, "CronJob", parts[1])
    return Workload(pod.namespace, owner.kind[:_KIND], owner.name)


def owner_of(pod: Pod) -> str:
    """Return the workload that creates the pod, as `Deployment shop/web`; empty if the pod has no controller.

    The result is for people. Anyone who may write the pod may write any owner.
    """
    if pod.owner is None:
        return ""
    found = workload_of(pod)
    return f"{found.kind} {found.namespace}/{limits.text(found.name, limits.NAME)}"


PEOPLE = ("owner", "team")
"""The ends of labels that name who is responsible, such as `example.com/team`."""


def owned_by(pod: Pod) -> str:
    """Return the workload of the pod with the people whom its labels name: `Deployment shop/web, owner ann`.

    It is empty if the pod has no controller.
    """
    workload = owner_of(pod)
    named = {key.rpartition("/")[2]: value for key, value in sorted(pod.labels.items()) if value}
    people = (f"{what} {limits.text(named[what], limits.NAME)}" for what in PEOPLE if what in named)
    return ", ".join((workload, *people)) if workload else ""


def serves(workload: Workload) -> bool:
    """Whether an interruption of the workload's only pod is noticed: it is no job, and no agent of a node."""
    return workload.kind not in _RUN_ONCE | _ON_EVERY_NODE
