"""hypervisorCondition: whether a condition of the node's Hypervisor has a status."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model.check_reads import Needs
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import HypervisorConditionCheck


def _needs(config: HypervisorConditionCheck) -> Needs:
    del config
    return Needs(hypervisors=True)


@check_type("hypervisorCondition", HypervisorConditionCheck, _needs)
def hypervisor_condition(config: HypervisorConditionCheck, given: CheckInput) -> CheckResult:
    """Pass when the Hypervisor has the condition with this status; one that it does not have fails."""
    found, why = given.read.hypervisor(given.node.name)
    if found is None:
        return unknown(why)
    if found.conditions is None:
        return unknown("the conditions of the Hypervisor can't be read")
    status = found.conditions.get(config.type)
    if status is None:
        return failed(f"the Hypervisor has no condition {config.type}")
    if status != config.status:
        return failed(f"the condition {config.type} of the Hypervisor is {status}, not {config.status}")
    return passed(f"the condition {config.type} of the Hypervisor is {status}")
