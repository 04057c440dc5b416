"""anyLabel: whether any node of the cluster has a label."""

from __future__ import annotations

from functools import partial

from reconciler.features.workflows.input import CheckInput, Fleet
from reconciler.features.workflows.plugins import check_type
from reconciler.model.check_reads import Needs
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import LabelCheck


def _needs(config: LabelCheck) -> Needs:
    return Needs(labels=frozenset({config.key}))


@check_type("anyLabel", LabelCheck, _needs)
def any_label(config: LabelCheck, given: CheckInput) -> CheckResult:
    """Pass when a node of the cluster has the label, with the value if one is set."""
    wanted = f"{config.key}={config.value}" if config.value else config.key
    name = given.members.once(("anyLabel", config.key, config.value), partial(_first, config, given.members))
    if not name:
        return failed(f"no node has the label {wanted}")
    return passed(f"node {name} has the label {wanted}")


def _first(config: LabelCheck, members: Fleet) -> str:
    """Return the name of the first node with the label, empty if there is none."""
    for member in members:
        value = member.node.labels.get(config.key)
        if value is not None and config.value in ("", value):
            return member.node.name
    return ""
