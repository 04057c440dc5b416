"""Maintenance that people request."""

from reconciler.plugins import ACT, Command

COMMANDS = {
    "request": Command(
        ACT,
        "Request maintenance of nodes, or cancel the request.",
        "request NODE --kind Reboot --not-before 4h",
    )
}

SYNONYMS = {"reboot": "request NODE --kind Reboot", "cancel": "request NODE --cancel"}
"""What people try instead, with the command that does it."""
