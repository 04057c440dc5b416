"""condition: whether a condition of the node has a status."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model.check_reads import Needs
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import ConditionCheck


def _needs(config: ConditionCheck) -> Needs:
    return Needs(conditions=frozenset({config.type}))


@check_type("condition", ConditionCheck, _needs)
def condition(config: ConditionCheck, given: CheckInput) -> CheckResult:
    """Pass when the node has the condition with this status; one that the node does not have fails."""
    found = given.node.condition(config.type)
    if found is None:
        return failed(f"the node has no condition {config.type}")
    if found.status != config.status:
        return failed(f"the condition {config.type} is {found.status}, not {config.status}")
    return passed(f"the condition {config.type} is {found.status}")
