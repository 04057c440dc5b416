"""What metrics say of a case agrees with the report."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from reconciler.features.metrics.metering import Meter
from reconciler.features.metrics.samples import PassView, pass_samples
from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import EndedCase
from tests.laws.agreement import ShownNode


def agrees(shown: ShownNode) -> None:
    """The metrics of the case have its forecast."""
    values = {
        sample.family.name.removeprefix("node_maintenance_"): sample.value
        for sample in pass_samples(PassView(shown.plan))
        if sample.labels[:1] == (shown.node.node,)
    }

    assert (values["case_will_be_missed"], values["case_at_risk"]) == (shown.missed, shown.at_risk)


def names_outcome(case: EndedCase, outcome: CaseResult) -> None:
    """The case is counted with what became of it."""
    with Meter() as meter:
        meter.keep((case,))
        families = text_string_to_metric_families(meter.text().decode())
        samples = [sample for family in families for sample in family.samples]

    counted = [each for each in samples if each.name == "node_maintenance_cases_total" and each.value]
    assert [each.labels["outcome"] for each in counted] == [outcome.value]
