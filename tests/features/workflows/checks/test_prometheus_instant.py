"""prometheusInstant: an expression over the value of a query."""

from __future__ import annotations

import math

import pytest

from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.model.check_reads import PrometheusAnswer, PrometheusQuery, ReadForChecks, Sample
from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, config, given

KEYS = {"url": "http://prometheus:9090", "query": "sum(up)", "expr": "value <= 1"}
QUERY = PrometheusQuery("http://prometheus:9090", "sum(up)")


def answered(*values: float, problem: str = "") -> ReadForChecks:
    """These samples."""
    samples = tuple(Sample(value) for value in values)
    return ReadForChecks(answers={QUERY: PrometheusAnswer(samples, problem)})


@pytest.mark.parametrize(
    ("read", "verdict", "reason"),
    [
        pytest.param(answered(1), Verdict.PASSED, "the value is 1, and value <= 1 is true", id="true"),
        pytest.param(answered(2), Verdict.FAILED, "the value is 2, and value <= 1 is false", id="false"),
        pytest.param(answered(), Verdict.UNKNOWN, "returns 0 samples", id="none"),
        pytest.param(answered(1, 1), Verdict.UNKNOWN, "returns 2 samples", id="two"),
        pytest.param(answered(-math.inf), Verdict.PASSED, "the value is -inf", id="infinite"),
        pytest.param(answered(math.nan), Verdict.UNKNOWN, "the value is NaN", id="no number"),
        pytest.param(answered(problem="no answer: refused"), Verdict.UNKNOWN, "refused", id="no answer"),
        pytest.param(ReadForChecks(), Verdict.UNKNOWN, "it was not asked", id="not asked"),
    ],
)
def test_the_expression_decides_about_the_only_sample(
    read: ReadForChecks, verdict: Verdict, reason: str
) -> None:
    answer = ask("prometheusInstant", given(read=read), **KEYS)

    assert answer.verdict is verdict
    assert reason in answer.reason


def test_an_expression_without_an_answer_is_unknown() -> None:
    keys = {**KEYS, "expr": "value + (value == 1) > 1"}

    assert ask("prometheusInstant", given(read=answered(1)), **keys).verdict is Verdict.UNKNOWN


def test_it_needs_its_query() -> None:
    assert CHECK_TYPES["prometheusInstant"].needs(config("prometheusInstant", **KEYS)).queries == {QUERY}


@pytest.mark.parametrize(
    ("key", "wrong", "said"),
    [
        pytest.param("url", "prometheus:9090", "is not a URL", id="url"),
        pytest.param("url", "file:///etc/passwd", "is not a URL", id="file"),
        pytest.param("query", "", "is empty", id="query"),
        pytest.param("expr", "value <", "it ends where a number", id="expression"),
        pytest.param("expr", "__import__('os')", "can't stand in this expression", id="code"),
    ],
)
def test_what_can_not_be_used_loads_and_is_unknown(key: str, wrong: str, said: str) -> None:
    keys = {**KEYS, key: wrong}
    found = config("prometheusInstant", **keys)

    ((where, message),) = found.unusable
    assert where == key
    assert said in message
    assert not CHECK_TYPES["prometheusInstant"].needs(found).queries
    answer = ask("prometheusInstant", given(read=answered(1)), **keys)
    assert answer.verdict is Verdict.UNKNOWN
    assert f"because of {key}" in answer.reason


def test_a_long_query_is_asked_and_shown_in_part() -> None:
    keys = {**KEYS, "query": f"sum({'x' * 3000})"}
    (query,) = CHECK_TYPES["prometheusInstant"].needs(config("prometheusInstant", **keys)).queries
    read = ReadForChecks(answers={query: PrometheusAnswer((Sample(1),))})
    answer = ask("prometheusInstant", given(read=read), **keys)

    assert query.query == keys["query"]
    assert answer.verdict is Verdict.PASSED
    assert len(answer.reason) < 300


def test_a_password_in_a_url_is_not_in_the_answer() -> None:
    keys = {**KEYS, "url": "http://me:pass@word@prometheus"}

    assert "word" not in ask("prometheusInstant", given(), **keys).reason


def test_a_file_needs_only_the_url() -> None:
    found = config("prometheusInstant", url="bananabread")

    assert [key for key, _ in found.unusable] == ["url", "query", "expr"]
