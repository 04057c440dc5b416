"""The cases that ended, as their sum and as tables."""

from reconciler.plugins import SEE, Command

COMMANDS = {
    "history": Command(
        SEE, "Sum up the cases that have ended, from --history or logs of serve.", "history FILE --since 30d"
    )
}

SYNONYMS = {"log": "history FILE", "logs": "history FILE", "past": "history FILE", "audit": "history FILE"}
"""What people try instead, with the command that does it."""
