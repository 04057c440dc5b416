"""checkHypervisor: whether fields in the status of the node's Hypervisor have given values."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model import limits
from reconciler.model.check_reads import Needs
from reconciler.model.hypervisor import Value
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import HypervisorCheck


def _needs(config: HypervisorCheck) -> Needs:
    del config
    return Needs(hypervisors=True)


@check_type("checkHypervisor", HypervisorCheck, _needs)
def check_hypervisor(config: HypervisorCheck, given: CheckInput) -> CheckResult:
    """Pass when all fields have their values. A field that can't be read is unknown."""
    found, why = given.read.hypervisor(given.node.name)
    if found is None:
        return unknown(why)
    others = []
    for key, value in config.fields.items():
        seen = found.status[key]
        if seen is None:
            return unknown(f"the field status.{key} of the Hypervisor is of another type than expected")
        if seen != value:
            others.append(f"{key} is {_shown(seen)}, not {_shown(value)}")
    if others:
        return failed(f"of the Hypervisor, {', '.join(others)}")
    return passed(f"of the Hypervisor, {', '.join(f'{k} is {_shown(v)}' for k, v in config.fields.items())}")


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return limits.text(f"[{', '.join(value)}]", 100)
    return limits.excerpt(value)
