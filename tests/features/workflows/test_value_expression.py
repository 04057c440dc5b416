"""Expressions over one number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.workflows.value_expression import ValueExpressionError, parse_value_expression


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("value == 1", 1, True),
        ("value<1", 1, False),
        ("value >= 0.5 && value <= 1e2", 7, True),
        ("!(value > 5) || value == 9", 9, True),
        ("1 + 2 * 3 == 7 && (1 + 2) * 3 == 9", 0, True),
        ("10 - 4 - 3 == 3", 0, True),
        ("2 ** 3 ** 2 == 64", 0, True),
        ("-value ** 2 == 4", 2, True),
        ("7 % 4 == 3", 0, True),
        ("value > 1 ? value < 3 : value == 0", 2, True),
        ("value > 1 ? value < 3 : value == 0", 1, False),
        ("value", 0, False),
        ("value", 2, True),
        ("value == true", 3, True),
        ("value != false", 0, False),
        ("true || value + true", 0, True),
        ("1 / value > 5", 0, True),
        ("-1 / value < 5", 0, True),
        ("value / value == value / value", 0, False),
        ("value % 0 == 0", 1, False),
        ("10 ** 1000 > value", 1, True),
        ("(0 - 2) ** 1025 < value", 1, True),
        ("(0 - 8) ** 0.5 == value", 1, False),
        ("value > 0", math.inf, True),
        ("value > 0 || value <= 0", math.nan, False),
    ],
)
def test_it_counts_as_gval_does(text: str, value: float, holds: bool) -> None:
    assert parse_value_expression(text).holds(value) is holds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it ends where"),
        ("value <", "it ends where"),
        ("value = 1", "can't stand in this expression"),
        ("up > 1", "the only name is `value`"),
        ("value 1", "was not expected"),
        ("(value", "a '\\)' is missing"),
        ("value ? 1", "a ':' is missing"),
        ("value * / 2", "was expected before '/'"),
        ("value.__class__", "can't stand in this expression"),
        ("(" * 100 + "1" + ")" * 100, "nested too deep"),
        ("-" * 100 + "1", "nested too deep"),
        ("1" * 600, "at most 512 characters"),
    ],
)
def test_a_mistake_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ValueExpressionError, match=said):
        parse_value_expression(text)


@pytest.mark.parametrize("text", ["value + true", "-(value > 1)", "true < value"])
def test_a_truth_is_no_number(text: str) -> None:
    with pytest.raises(ValueExpressionError, match="needs numbers"):
        parse_value_expression(text).holds(1)


@given(st.text("value0123456789.+-*/%<>=!&|?:() ", max_size=600), st.floats())
def test_every_text_is_read_or_refused(text: str, value: float) -> None:
    try:
        found = parse_value_expression(text).holds(value)
    except ValueExpressionError:
        return
    assert isinstance(found, bool)
