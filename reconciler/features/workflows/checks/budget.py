"""budget: whether the budget of the settings has a place for the node."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.profiles.exemption import exempt_from, is_exempt
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import BudgetCheck


@check_type("budget", BudgetCheck)
def budget(_config: BudgetCheck, given: CheckInput) -> CheckResult:
    """Pass when one more node may be out of service, the node holds a place, or it is lost anyway."""
    platform = given.platform
    if platform is None:
        return unknown("the budget of the settings is not read")
    refusals = platform.places.refusals(given.node)
    if not refusals:
        return passed("the budget has a place for the node")
    if is_exempt(platform):
        return passed(f"exempt from the budget: {'; '.join(refusals)}")
    moments = (platform.places.eases_at, exempt_from(platform))
    return failed("; ".join(refusals), min((one for one in moments if one), default=None))
