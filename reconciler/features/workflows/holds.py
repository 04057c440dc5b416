"""Holds of workflows that come from no check."""

from __future__ import annotations

from reconciler.model.holds import SETTINGS, HoldKind

WORKFLOW = HoldKind(
    "workflow", f"whoever can change what the check reads; or {SETTINGS}: `profiles`", waits=True
)
WORKFLOW_DATA_READABLE = HoldKind(
    "workflowDataReadable",
    "whoever wrote the annotation: `kubectl annotate node {node} {keys}/maintenance-data-` removes it",
)
WORKFLOW_GONE = HoldKind("workflowGone", "a person: `{release}` uncordons the node")
WORKFLOW_UNCORDONED = HoldKind(
    "workflowUncordoned", "a person: `kubectl cordon {node}` goes on with the drain"
)
WORKFLOW_UNKNOWN = HoldKind("workflowUnknown", f"whoever labelled the node; or {SETTINGS}: `profiles`")

HOLDS = (WORKFLOW, WORKFLOW_DATA_READABLE, WORKFLOW_GONE, WORKFLOW_UNCORDONED, WORKFLOW_UNKNOWN)
