"""What people order: holds, deferrals and approvals."""

COMMANDS = {
    "approve": "Approve the drains for the events that are reported now, or withdraw the approval.",
    "defer": "Put the drain of nodes off until a moment, or until a deadline that comes first.",
    "hold": "Hold nodes: no drain of them begins, not even at a deadline.",
    "resume": "End the hold and the deferral of nodes, whoever gave them.",
}

SYNONYMS = {
    "pause": "hold --all --now",
    "stop": "hold --all --now",
    "unhold": "resume",
    "continue": "resume",
    "postpone": "defer",
}
"""What people try instead, with the command that does it."""
