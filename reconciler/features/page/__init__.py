"""The page: one HTML file about the whole fleet, from one plan. It has no script and needs nothing else."""

from reconciler.plugins import SEE, Command

COMMANDS = {"page": Command(SEE, "Open the page of the reconciler, from a Pod that answers.", "page")}

SYNONYMS = {"ui": "page", "web": "page", "dashboard": "page", "browse": "page", "open": "page"}
"""What people try instead, with the command that does it."""
