"""nodeCount: whether the cluster has enough nodes."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import NodeCountCheck


@check_type("nodeCount", NodeCountCheck)
def node_count(config: NodeCountCheck, given: CheckInput) -> CheckResult:
    """Pass when the cluster has at least so many nodes, managed or not."""
    count = len(given.members)
    if count < config.count:
        return failed(f"the cluster has {count} nodes, and needs {config.count}")
    return passed(f"the cluster has {count} nodes")
