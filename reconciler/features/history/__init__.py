"""The cases that ended and what people did: in a file, in the cluster, as sums and as tables."""

from reconciler.plugins import SEE, Command

NAME = "node-maintenance-history"
"""The ConfigMap that keeps the cases that ended, and what people did."""

COMMANDS = {
    "history": Command(
        SEE,
        "Sum up the cases that have ended, or list what people did.",
        "history --audit --since 7d",
        "Who did what?",
    )
}

SYNONYMS = {
    "log": "history",
    "logs": "history",
    "past": "history",
    "audit": "history --audit",
    "who": "history --audit",
}
"""What people try instead, with the command that does it."""
