"""kubernikusCount: unknown, because Kubernikus is not asked."""

from __future__ import annotations

from reconciler.engine.plugins import CheckResult, unknown
from reconciler.settings.sections.check_types import KubernikusCountCheck
from reconciler.workflows.input import CheckInput
from reconciler.workflows.plugins import check_type


@check_type("kubernikusCount", KubernikusCountCheck)
def kubernikus_count(config: KubernikusCountCheck, given: CheckInput) -> CheckResult:
    """Answer unknown, with the check to use instead."""
    del config, given
    return unknown("Kubernikus is not asked; use the check nodeCount instead")
