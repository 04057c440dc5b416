"""What people approve: drains that the settings leave to their approval."""

from reconciler.plugins import ACT, Command

COMMANDS = {
    "approve": Command(
        ACT, "Approve drains for what is announced now, or withdraw the approval.", "approve NODE"
    )
}

SYNONYMS = {
    "allow": "approve NODE",
    "accept": "approve NODE",
    "reject": "approve NODE --cancel",
    "deny": "approve NODE --cancel",
}
"""What people try instead, with the command that does it."""
