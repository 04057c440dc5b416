"""The last good texts of the settings: what has changed, and back to an earlier one."""

from reconciler.plugins import SET_UP, Command

COMMANDS = {
    "settings": Command(
        SET_UP,
        "List, show, compare or restore revisions of the settings.",
        "settings diff",
        "What has changed in the settings?",
    )
}

SYNONYMS = {
    "revisions": "settings",
    "diff": "settings diff",
    "rollback": "settings rollback",
    "revert": "settings rollback",
}
"""What people try instead, with the command that does it."""

KEPT_IN = "node-maintenance-settings"
"""The ConfigMap with the revisions."""
