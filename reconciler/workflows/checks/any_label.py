"""anyLabel: whether any node of the cluster has a label."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, failed, passed
from reconciler.model.check_reads import Needs
from reconciler.settings.sections.check_types import LabelCheck
from reconciler.workflows.input import CheckInput
from reconciler.workflows.plugins import check_type


def _needs(config: LabelCheck) -> Needs:
    return Needs(labels=frozenset({config.key}))


@check_type("anyLabel", LabelCheck, _needs)
def any_label(config: LabelCheck, given: CheckInput) -> CheckResult:
    """Pass when a node of the cluster has the label, with the value if one is set."""
    wanted = f"{config.key}={config.value}" if config.value else config.key
    for member in given.members:
        value = member.node.labels.get(config.key)
        if value is not None and config.value in ("", value):
            return passed(f"node {member.node.name} has the label {wanted}")
    return failed(f"no node has the label {wanted}")
