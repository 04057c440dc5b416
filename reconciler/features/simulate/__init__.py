"""Plays the same events against several policies, and compares what becomes of the cases."""

from reconciler.plugins import PLAN, Command

COMMANDS = {
    "simulate": Command(
        PLAN,
        "Play months of maintenance against a policy, or compare two.",
        "simulate --config FILE --made-up 1",
    )
}

SYNONYMS = {"compare": "simulate --config FILE --made-up 1", "test": "simulate --config FILE --made-up 1"}
"""What people try instead, with the command that does it."""
