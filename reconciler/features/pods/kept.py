"""What the cluster keeps of moved pods."""

from __future__ import annotations

from reconciler.features.pods import NAME
from reconciler.features.pods.moved import MovedPod, from_fields, to_fields
from reconciler.kubernetes.kept_lines import LineKind

MOVED_PODS: LineKind[MovedPod] = LineKind(
    NAME,
    "moved pods",
    "the pods that are moved from then on are kept",
    lambda pod: pod.at,
    lambda pod: (pod.uid, pod.at),
    to_fields,
    from_fields,
)
