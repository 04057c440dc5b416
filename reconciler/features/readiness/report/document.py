"""Readiness as a document for machines. Its keys only grow; `docs/output.md` has a heading for each."""

from __future__ import annotations

from reconciler import __version__
from reconciler.model.moments import to_text
from reconciler.model.readiness import Finding, KeptByPeople, Readiness, Severity, WorkloadFindings
from reconciler.report.values import Document, moment_value, settings_value, unseen_value

MOST_NAMES = 100
"""Names of nodes, and of pods, of one finding; their numbers are always whole."""


def to_document(found: Readiness) -> Document:
    """Return the document. All findings are in it."""
    counted = dict.fromkeys(Severity, 0)
    for one in found.workloads:
        counted[one.severity] += 1
    return {
        "version": "v1",
        "program": __version__,
        "at": to_text(found.now),
        "timeZone": found.time_zone,
        "settings": settings_value(found.settings, found.now),
        "assumed": found.kind,
        "nodeCount": found.nodes,
        "podCount": found.pods,
        "blockedNodes": list(found.blocked),
        "unsure": found.unsure,
        "counts": {severity.value: count for severity, count in counted.items()},
        "notes": list(found.notes),
        "unseen": [unseen_value(one) for one in found.unseen],
        "people": [_people(one) for one in found.people],
        "workloads": [_workload(one) for one in found.workloads],
    }


def _people(one: KeptByPeople) -> Document:
    return {
        "code": one.code.value,
        "because": one.because,
        "remedy": one.remedy,
        "until": moment_value(one.until),
        "nodeCount": len(one.nodes),
        "nodeNames": list(one.nodes[:MOST_NAMES]),
    }


def _workload(one: WorkloadFindings) -> Document:
    return {
        "namespace": one.workload.namespace,
        "kind": one.workload.kind or None,
        "name": one.workload.name or None,
        "severity": one.severity.value,
        "findings": [_finding(finding) for finding in one.findings],
    }


def _finding(one: Finding) -> Document:
    return {
        "code": one.code.value,
        "severity": one.severity.value,
        "because": one.because,
        "remedy": one.remedy,
        "about": list(one.about),
        "podCount": len(one.pods),
        "podNames": list(one.pods[:MOST_NAMES]),
        "nodeCount": len(one.nodes),
        "nodeNames": list(one.nodes[:MOST_NAMES]),
    }
