"""Start: a person begins the drain of announced maintenance."""

from reconciler.plugins import ACT, Command

COMMANDS = {
    "start": Command(
        ACT,
        "Begin the drain of announced maintenance earlier than planned.",
        "start NODE --now",
        "Drain a node now that would be missed:",
    )
}

SYNONYMS = {"begin": "start NODE", "expedite": "start NODE --now"}
"""What people try instead, with the command that does it."""
