"""Check expressions: the grammar, three-valued logic, and which answers block."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.expression import All, AnyOf, Expression, ExpressionError, Name, Not, names, parse
from reconciler.model.plan import CheckAnswer, Verdict
from reconciler.profiles.state_machine import blockers, evaluate

CASES = json.loads((Path(__file__).parents[1] / "cases" / "sapcc.json").read_text("utf-8"))["cases"]
CHAINS = [case for case in CASES if "chain" in case]
PASSED, FAILED, UNKNOWN = Verdict.PASSED, Verdict.FAILED, Verdict.UNKNOWN

trees: st.SearchStrategy[Expression] = st.recursive(
    st.sampled_from("abc").map(Name),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, max_size=3).map(lambda parts: All(tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: AnyOf(tuple(parts))),
    ),
    max_leaves=8,
)
answers = st.fixed_dictionaries({name: st.sampled_from(tuple(Verdict)) for name in "abc"})


def _said(verdicts: Mapping[str, Verdict]) -> Any:
    return lambda name: CheckAnswer(name, verdicts[name], f"{name} {verdicts[name]}")


@pytest.mark.parametrize("case", CHAINS, ids=[case["chain"] for case in CHAINS])
def test_a_chain_of_the_maintenance_controller_means_the_same_here(case: dict[str, Any]) -> None:
    """`plugins` counts mentions; what is an error there for a missing blank only names what there is not."""
    text = case["chain"]
    tree = parse(text)
    words = text.replace("!", " ").replace("(", " ").replace(")", " ").replace("&&", " ").replace("||", " ")
    if "plugins" in case:
        assert len(words.split()) == case["plugins"]
    assert set(names(tree)) == set(words.split())


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("", All(()), id="empty passes"),
        pytest.param("a", Name("a"), id="a name"),
        pytest.param("a&&b", All((Name("a"), Name("b"))), id="no blanks are needed"),
        pytest.param(
            "a || b && c", AnyOf((Name("a"), All((Name("b"), Name("c"))))), id="and binds closer than or"
        ),
        pytest.param("!a && b", All((Not(Name("a")), Name("b"))), id="not binds closest"),
        pytest.param("!(a || b)", Not(AnyOf((Name("a"), Name("b")))), id="brackets"),
        pytest.param("!!a", Not(Not(Name("a"))), id="not not"),
    ],
)
def test_a_text_is_read_as_a_tree(text: str, tree: Expression) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a &&", "ends where a check was expected"),
        ("&& a", "a check was expected before '&&'"),
        ("(a", "a '\\)' is missing"),
        ("a)", "'\\)' was not expected"),
        ("a b", "'b' was not expected"),
        ("a & b", "'&' can't stand"),
        ("()", "a check was expected before '\\)'"),
    ],
)
def test_what_is_no_expression_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        parse(text)


@given(st.text(alphabet="ab&|!() ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tree = parse(text)
    except ExpressionError:
        return
    blanked = text.translate({ord(sign): " " for sign in "&|!()"})
    assert set(names(tree)) == set(blanked.split())


@pytest.mark.parametrize(
    ("text", "a", "b", "verdict"),
    [
        ("a && b", PASSED, PASSED, PASSED),
        ("a && b", PASSED, UNKNOWN, UNKNOWN),
        ("a && b", FAILED, UNKNOWN, FAILED),
        ("a || b", FAILED, UNKNOWN, UNKNOWN),
        ("a || b", PASSED, UNKNOWN, PASSED),
        ("a || b", FAILED, FAILED, FAILED),
        ("!a", PASSED, PASSED, FAILED),
        ("!a", FAILED, PASSED, PASSED),
        ("!a", UNKNOWN, PASSED, UNKNOWN),
        ("", FAILED, FAILED, PASSED),
    ],
)
def test_the_verdict_is_three_valued(text: str, a: Verdict, b: Verdict, verdict: Verdict) -> None:
    assert evaluate(parse(text), _said({"a": a, "b": b})) is verdict


@given(trees, answers)
def test_not_turns_the_verdict_and_unknown_stays_unknown(
    tree: Expression, verdicts: dict[str, Verdict]
) -> None:
    opposite = {PASSED: FAILED, FAILED: PASSED, UNKNOWN: UNKNOWN}

    assert evaluate(Not(tree), _said(verdicts)) is opposite[evaluate(tree, _said(verdicts))]


@given(trees, answers)
def test_what_an_unknown_answer_turns_out_to_be_never_contradicts_the_verdict(
    tree: Expression, verdicts: dict[str, Verdict]
) -> None:
    before = evaluate(tree, _said(verdicts))
    if before is not UNKNOWN:
        for known in (PASSED, FAILED):
            later = {name: known if verdict is UNKNOWN else verdict for name, verdict in verdicts.items()}
            assert evaluate(tree, _said(later)) is before


@given(trees, answers)
def test_there_are_blockers_exactly_where_the_whole_does_not_pass(
    tree: Expression, verdicts: dict[str, Verdict]
) -> None:
    found = blockers(tree, _said(verdicts))

    if evaluate(tree, _said(verdicts)) is PASSED:
        assert found == ()
    elif _has_a_check_in_every_part(tree):
        assert found
    assert len({one.name for one in found}) == len(found)


def _has_a_check_in_every_part(tree: Expression) -> bool:
    match tree:
        case Name():
            return True
        case Not(part):
            return _has_a_check_in_every_part(part)
        case All(parts) | AnyOf(parts):
            return bool(parts) and all(map(_has_a_check_in_every_part, parts))


@pytest.mark.parametrize(
    ("text", "verdicts", "blocking"),
    [
        pytest.param("a && b && c", (FAILED, PASSED, UNKNOWN), ["a", "c"], id="every one, not the first"),
        pytest.param("a || b", (FAILED, FAILED, PASSED), ["a", "b"], id="all ways are closed"),
        pytest.param("a || b", (PASSED, FAILED, PASSED), [], id="one way is open"),
        pytest.param("!a && b", (PASSED, PASSED, PASSED), ["a"], id="behind a not it blocks by passing"),
        pytest.param("!(a && b)", (PASSED, PASSED, PASSED), ["a", "b"], id="not both"),
        pytest.param("a && (a || b)", (FAILED, FAILED, PASSED), ["a", "b"], id="each once"),
    ],
)
def test_what_keeps_it_from_passing_is_named(
    text: str, verdicts: tuple[Verdict, Verdict, Verdict], blocking: list[str]
) -> None:
    said = _said(dict(zip("abc", verdicts, strict=True)))

    assert [one.name for one in blockers(parse(text), said)] == blocking
