"""prometheusInstant: whether the value of a Prometheus query is as an expression wants it."""

from __future__ import annotations

import math

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model import limits
from reconciler.model.check_reads import Needs, PrometheusQuery
from reconciler.model.value_expression import ValueExpressionError, parse_value_expression
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import PrometheusInstantCheck

_SHOWN = 200
"""Characters of a query in the reason of an answer."""


def _query(config: PrometheusInstantCheck) -> PrometheusQuery:
    return PrometheusQuery(config.url.strip(), config.query)


def _needs(config: PrometheusInstantCheck) -> Needs:
    return Needs() if config.unusable else Needs(queries=frozenset({_query(config)}))


@check_type("prometheusInstant", PrometheusInstantCheck, _needs)
def prometheus_instant(config: PrometheusInstantCheck, given: CheckInput) -> CheckResult:
    """Pass when the expression is true for the only sample.

    It is unknown without an answer, or when the configuration can't be used.
    """
    if config.unusable:
        # What is wrong with a URL may have a password in it.
        keys = ", ".join(key for key, _ in config.unusable)
        return unknown(f"Prometheus is not asked, because of {keys}: see reconciler check-config")
    answer = given.read.answer(_query(config))
    said = f"Prometheus, {limits.text(config.query, _SHOWN)}"
    if answer.problem:
        return unknown(f"{said}: {answer.problem}")
    if len(answer.samples) != 1:
        return unknown(f"{said}: the query returns {len(answer.samples)} samples, not exactly one")
    value = answer.samples[0].value
    if math.isnan(value):
        return unknown(f"{said}: the value is NaN, which is no number")
    try:
        holds = parse_value_expression(config.expr).holds(value)
    except ValueExpressionError as error:
        return unknown(f"{said}: {config.expr} has no answer for {value:g}: {error}")
    found = f"{said}: the value is {value:g}, and {config.expr} is {'true' if holds else 'false'}"
    return passed(found) if holds else failed(found)
