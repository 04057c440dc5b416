"""What people order: holds, deferrals and approvals."""

from reconciler.plugins import ACT, Command

COMMANDS = {
    "approve": Command(
        ACT, "Approve drains for what is announced now, or withdraw the approval.", "approve NODE"
    ),
    "defer": Command(
        ACT, "Put the drain of nodes off until a moment, or an earlier deadline.", "defer NODE --until 4h"
    ),
    "hold": Command(
        ACT,
        "Hold nodes: no drain of them begins, not even at a deadline.",
        "hold --all --now",
        "Stop all drains now:",
    ),
    "resume": Command(ACT, "End the hold and the deferral of nodes, whoever gave them.", "resume --all"),
}

SYNONYMS = {
    "pause": "hold --all --now",
    "stop": "hold --all --now",
    "disable": "hold --all --now",
    "freeze": "hold --all",
    "block": "hold --all",
    "unhold": "resume --all",
    "unpause": "resume --all",
    "unfreeze": "resume --all",
    "continue": "resume --all",
    "enable": "resume --all",
    "delay": "defer NODE --until 4h",
    "snooze": "defer NODE --until 4h",
    "postpone": "defer NODE --until 4h",
    "allow": "approve NODE",
    "accept": "approve NODE",
    "reject": "approve NODE --cancel",
    "deny": "approve NODE --cancel",
}
"""What people try instead, with the command that does it."""
