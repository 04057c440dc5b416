"""Pods that work as one group over several nodes: the loss of one of them disrupts them all.

Sources of the labels:

- JobSet: kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go. By default it recreates all its Jobs
  when one of them fails.
- LeaderWorkerSet: kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go. By default
  (RecreateGroupOnPodRestart) it recreates the pods of a group when one of them is recreated. Its groups do
  not depend on each other.
- PodGroup of the scheduler plugins (coscheduling): kubernetes-sigs/scheduler-plugins, apis/scheduling.
- Pod groups of Kueue: kubernetes-sigs/kueue, pkg/controller/jobs/pod/constants.
- Jobs of Volcano: volcano.sh/apis, pkg/apis/batch/v1alpha1. A PodGroup of Volcano is named in an annotation,
  by which no list can be asked for.

A person who may create pods can write these labels. They bring a start forward, and never put one off.
"""

from __future__ import annotations

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


def group_of(pod: Pod) -> str:
    """Return the group of a pod for people (`JobSet shop/train`), empty if it is in none.

    A pod that has ended or is being deleted, and one of a DaemonSet or of a kubelet, is in none: a drain does
    not disrupt its group.
    """
    if pod.finished or pod.mirror or pod.deleting_until is not None:
        return ""
    if pod.owner is not None and pod.owner.kind in ("DaemonSet", "Node"):
        return ""
    for key, kind in _KINDS.items():
        name = pod.labels.get(key)
        if name:
            index = pod.labels.get(_GROUP_INDEX, "") if key == _LEADER_WORKER_SET else ""
            return f"{kind} {pod.namespace}/{name}{f' group {index}' if index else ''}"
    return ""
