"""What workflows give to a pass."""

from __future__ import annotations

from reconciler.features.workflows.configured import workflows_of
from reconciler.features.workflows.decide import NodeWorkflows
from reconciler.features.workflows.reading import read_for_checks
from reconciler.model.ports import Outside
from reconciler.model.workflow import ReadForChecks
from reconciler.passes.plugin import Feature, Wants
from reconciler.settings.schema import Settings


def _reads(settings: Settings) -> Wants:
    needs = workflows_of(settings.profiles).needs
    return Wants(conditions=needs.conditions, annotations=needs.annotations, labels=needs.labels)


def _read_checks(outside: Outside, settings: Settings) -> ReadForChecks:
    return read_for_checks(outside, workflows_of(settings.profiles).needs)


FEATURE = Feature("workflows", reads=_reads, read_checks=_read_checks, beside=NodeWorkflows)
