"""What the program does beside its core: a folder or a file for each feature.

To add one, add its file or folder, and its name here. The names are in the order of the fold.
`reconciler/plugins.py` loads only the parts that a command needs.
"""

FEATURES = (
    "machines",
    "workflows",
    "publishing",
    "approvals",
    "calendars",
    "events",
    "history",
    "hooks",
    "metrics",
    "notices",
    "observed",
    "page",
    "planning",
    "pods",
    "readiness",
    "recordings",
    "revisions",
    "simulate",
    "start",
    "tracing",
    "esx",
    "kubernikus",
)
