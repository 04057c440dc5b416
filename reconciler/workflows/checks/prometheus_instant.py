"""prometheusInstant: whether the value of a Prometheus query is as an expression wants it."""

from __future__ import annotations

import math

from reconciler.engine.plugins import CheckResult, failed, passed, unknown
from reconciler.model.check_reads import Needs, PrometheusQuery
from reconciler.model.value_expression import ValueExpressionError
from reconciler.settings.sections.check_types import PrometheusInstantCheck
from reconciler.workflows.input import CheckInput
from reconciler.workflows.plugins import check_type


def _query(config: PrometheusInstantCheck) -> PrometheusQuery:
    return PrometheusQuery(config.url, config.query)


def _needs(config: PrometheusInstantCheck) -> Needs:
    return Needs(queries=frozenset({_query(config)}))


@check_type("prometheusInstant", PrometheusInstantCheck, _needs)
def prometheus_instant(config: PrometheusInstantCheck, given: CheckInput) -> CheckResult:
    """Pass when the expression is true for the only sample. Without an answer, it is unknown."""
    answer = given.read.answer(_query(config))
    said = f"Prometheus, {config.query}"
    if answer.problem:
        return unknown(f"{said}: {answer.problem}")
    if len(answer.samples) != 1:
        return unknown(f"{said}: the query returns {len(answer.samples)} samples, not exactly one")
    value = answer.samples[0].value
    if math.isnan(value):
        return unknown(f"{said}: the value is NaN, which is no number")
    try:
        holds = config.expr.holds(value)
    except ValueExpressionError as error:
        return unknown(f"{said}: {config.expr.text} has no answer for {value:g}: {error}")
    found = f"{said}: the value is {value:g}, and {config.expr.text} is {'true' if holds else 'false'}"
    return passed(found) if holds else failed(found)
