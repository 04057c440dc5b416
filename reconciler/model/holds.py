"""Why a pass does nothing about a node now: the codes of holds, and what a hold waits for.

A hold's code is the name of the check that did not pass, or one of `HoldCode`. Reports, logs and
NodeMaintenance objects show it, so the values never change.
"""

from __future__ import annotations

from enum import StrEnum


class HoldCode(StrEnum):
    """The codes of holds that do not come from a check."""

    DISMISSED = "dismissed"
    DRAIN = "drain"
    DRAIN_SLOT = "drainSlot"
    END_REPORTED = "endReported"
    EVENT_READABLE = "eventReadable"
    INTERNAL = "internal"
    IN_TIME = "inTime"
    LOOKED_AFTER = "lookedAfter"
    NAMESPACES_READABLE = "namespacesReadable"
    NODE_WRITABLE = "nodeWritable"
    NOT_CLAIMED = "notClaimed"
    ONE_PROFILE = "oneProfile"
    PODS_READABLE = "podsReadable"
    RECORD_READABLE = "recordReadable"
    WORKFLOW = "workflow"
    WORKFLOW_DATA_READABLE = "workflowDataReadable"
    WORKFLOW_GONE = "workflowGone"
    WORKFLOW_UNCORDONED = "workflowUncordoned"


class WaitsFor(StrEnum):
    """What a hold waits for, as other tools distinguish it."""

    PERMISSION = "permission"
    """A time or a mode in which drains may start."""

    TURN = "turn"
    """Other nodes: nothing else prevents the start."""

    OTHER = "other"
    """Anything else."""
