"""Who moved which pod, when and why: a line for each eviction, and what the cluster keeps of them."""

from reconciler.plugins import SEE, Command

EVICTED = "evicted"
"""The `event` of a line about a pod that was evicted, in a log or a file."""

NAME = "node-maintenance-pods"
"""The ConfigMap that keeps which pods were moved."""

PUBLISHED = "node-maintenance-pods-of-namespace"
"""The ConfigMap in a namespace that says which of its pods were moved, and which are to be moved."""

COMMANDS = {
    "pods": Command(SEE, "Print which pods were moved: from where, when, and why.", "pods -n shop --since 2d")
}

SYNONYMS = {"evictions": "pods -A", "evicted": "pods -A", "moved": "pods -A", "tonight": "pods -A --tonight"}
"""What people try instead, with the command that does it."""
