"""hasAnnotation: whether the node has an annotation."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model import limits
from reconciler.model.check_reads import Needs
from reconciler.profiles.plugins import CheckResult, failed, passed
from reconciler.settings.sections.check_types import AnnotationCheck


def _needs(config: AnnotationCheck) -> Needs:
    return Needs(annotations=frozenset({config.key}))


@check_type("hasAnnotation", AnnotationCheck, _needs)
def has_annotation(config: AnnotationCheck, given: CheckInput) -> CheckResult:
    """Pass when the node has the annotation, with the value if one is set."""
    value = given.node.annotations.get(config.key)
    if value is None:
        return failed(f"the node has no annotation {config.key}")
    shown = limits.excerpt(value)
    if config.value and value != config.value:
        return failed(f"the annotation {config.key} is {shown}, not {config.value!r}")
    return passed(f"the annotation {config.key} is {shown}")
