"""Maintenance that people request."""

from reconciler.plugins import ACT, Command

COMMANDS = {
    "request": Command(
        ACT,
        "Request maintenance of nodes, or cancel the request.",
        "request NODE --kind Reboot --not-before 4h",
    )
}
