"""Files of maintenance-controller are read as Go's yaml.v2 reads them."""

from __future__ import annotations

import pytest

from reconciler.settings.yaml import go_plain, read_go_yaml


@pytest.mark.parametrize(
    ("written", "text"),
    [
        *((word, "True") for word in ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "TRUE")),
        *((word, "False") for word in ("n", "no", "NO", "off", "Off", "false")),
        *((word, "None") for word in ("", "~", "null", "Null")),
        *(("010", "8"), ("-010", "-8"), ("0o17", "15"), ("0x1F", "31"), ("0b11", "3"), ("08", "8")),
        *(("1_000", "1000"), ("0", "0"), ("+5", "5"), ("12", "12")),
        *(("1.0", "1"), ("1.10", "1.1"), ("2.50", "2.5"), (".5", "0.5"), ("123456.0", "123456")),
        *(("1e6", "1e+06"), ("1234567.0", "1.234567e+06"), ("0.00001", "1e-05"), ("0.0001", "0.0001")),
        *((word, word) for word in ("oN", "tRue", "22:00", "2026-12-24", "_1", "a_1", "1.2.3", "yes!")),
        ("9" * 400, "9" * 400),
    ],
)
def test_a_scalar_without_quotes_has_the_meaning_that_it_has_there(written: str, text: str) -> None:
    assert str(go_plain(written)) == text


@pytest.mark.parametrize("written", ["'yes'", '"010"', "!!str 1.0"])
def test_quotes_keep_the_text(written: str) -> None:
    value = read_go_yaml(f"a: {written}").value

    assert isinstance(value, dict)
    assert isinstance(value["a"], str)


def test_an_alias_is_the_value_of_its_anchor_and_a_merge_key_adds_what_is_not_there() -> None:
    document = read_go_yaml(
        "base: &base {key: a, value: yes}\n"
        "more: &more {key: b, other: 1}\n"
        "one: {<<: *base, key: c}\n"
        "both: {<<: [*base, *more]}\n"
        "list: [*base, 2]\n"
    )

    assert document.mistakes == []
    assert document.value == {
        "base": {"key": "a", "value": True},
        "more": {"key": "b", "other": 1},
        "one": {"key": "c", "value": True},
        "both": {"key": "a", "value": True, "other": 1},
        "list": [{"key": "a", "value": True}, 2],
    }


def _laughs(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def _nested(levels: int) -> str:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(_laughs(9), "more than 100000 values", id="a billion laughs"),
        pytest.param(
            _laughs(5) + "\n" + "\n".join(f"b{n}: *a3" for n in range(9)), "values", id="one too many"
        ),
        pytest.param(_nested(60), "nested deeper than 40 levels", id="deep by its aliases"),
        pytest.param("a: &x [*x]", "has no anchor &x before it", id="in itself"),
        pytest.param("a: *x", "has no anchor &x before it", id="without an anchor"),
        pytest.param("a: {<<: 3}", "<< needs a mapping", id="no mapping"),
        pytest.param("a: {<<: [{b: 1}, 3]}", "<< needs a mapping", id="no mapping in a list"),
    ],
)
def test_aliases_have_limits(text: str, message: str) -> None:
    ((_, mistake),) = read_go_yaml(text).mistakes

    assert message in mistake.message
