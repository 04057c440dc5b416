"""hasLabel: whether the node has a label."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model.check_reads import Needs
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import LabelCheck


def _needs(config: LabelCheck) -> Needs:
    return Needs(labels=frozenset({config.key}))


@check_type("hasLabel", LabelCheck, _needs)
def has_label(config: LabelCheck, given: CheckInput) -> CheckResult:
    """Pass when the node has the label, with the value if one is set."""
    value = given.node.labels.get(config.key)
    if value is None:
        return failed(f"the node has no label {config.key}")
    if config.value and value != config.value:
        return failed(f"the label {config.key} is {value!r}, not {config.value!r}")
    return passed(f"the label {config.key} is {value!r}")
