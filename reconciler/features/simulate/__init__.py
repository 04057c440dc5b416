"""Plays the same events against several policies, and compares what becomes of the cases."""

COMMANDS = {"simulate": "Play months of maintenance against a policy, and compare it with another one."}
