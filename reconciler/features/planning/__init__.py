"""What will start when: the cases of a plan until a moment, as a table, a chart, and JSON."""

from reconciler.plugins import PLAN, Command

COMMANDS = {
    "plan": Command(
        PLAN,
        "Print what will start when, as a table and a chart.",
        "plan --until 2d",
        "Which drain starts when?",
    )
}

SYNONYMS = {"when": "plan NODE", "next": "plan", "upcoming": "plan", "schedule": "plan", "timeline": "plan"}
"""What people try instead, with the command that does it."""
