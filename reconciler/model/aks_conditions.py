"""The node conditions of AKS's node-problem-detector that report scheduled events."""

from __future__ import annotations

MAIN = "VMEventScheduled"
RELATIVES = (
    "PreemptionScheduled",
    "FreezeScheduled",
    "RebootScheduled",
    "RedeployScheduled",
    "PreemptScheduled",
    "TerminateScheduled",
)
CONDITIONS = frozenset((MAIN, *RELATIVES))
NOTICES = frozenset((MAIN, "RebootScheduled", "RedeployScheduled"))
"""Those that report the start of planned maintenance, and not another kind of event only."""
