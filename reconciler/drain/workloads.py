"""The top controller of a pod, from the names that the controllers of Kubernetes give."""

from __future__ import annotations

import re

from reconciler.model import limits
from reconciler.model.pod import Pod
from reconciler.model.readiness import Workload

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


def serves(workload: Workload) -> bool:
    """Whether an interruption of the workload's only pod is noticed: it is no job, and no agent of a node."""
    return workload.kind not in _RUN_ONCE | _ON_EVERY_NODE
