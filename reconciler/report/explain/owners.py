"""Whom to ask about a pod: its workload, and labels that name a team."""

from __future__ import annotations

from reconciler.model.pod import Pod

OWNER_LABELS = (
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/created-by",
    "owner",
    "team",
)
"""Labels of a pod that often name who is responsible; also below a prefix, such as `example.com/team`."""

_LAST = frozenset({"owner", "team"})
_MOST = 8


def owner_labels(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Return the labels that name an owner or a team, sorted by their key, the first few."""
    found = sorted(
        (key, value)
        for key, value in pod.labels.items()
        if value and (key in OWNER_LABELS or key.rpartition("/")[2] in _LAST)
    )
    return tuple(found[:_MOST])
