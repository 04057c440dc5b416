"""Every step and every hold is a sentence: no name of a check, and no expression, stands in one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.expression import names, parse
from reconciler.model.plan import CheckAnswer, Verdict
from reconciler.model.record import State
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.state_machine import Profile, StateRules, Step, builtin, evaluate, supporters, walk
from reconciler.profiles.triggers import TRIGGERS
from reconciler.profiles.vocabulary import Check, CheckType, failed, passed
from tests.support.builders import record, situation
from tests.support.searching import examples

RAW = re.compile(rf"!|&&|\|\||\b({'|'.join(CHECKS)})\b")
DEFAULT = builtin("default", TRIGGERS)
EXPRESSIONS = sorted(
    {step.text for state in State for step in DEFAULT.rules(state).transitions}
    | {f"!{name}" for name in CHECKS}
    | set(CHECKS)
    | {"!(drainAsked && nodeReady) || !leftToUs"}
)
VERDICTS = st.fixed_dictionaries({name: st.sampled_from(tuple(Verdict)) for name in CHECKS})


def checks(verdicts: Mapping[str, Verdict]) -> dict[str, Check]:
    """Every check with a given answer: it passes without a reason where its own code does so."""

    def answering(one: Check) -> Check:
        ordinarily = one.type.ordinarily
        reason = "" if verdicts[one.name] is Verdict.PASSED and ordinarily else "a reason"
        found = passed(reason) if verdicts[one.name] is Verdict.PASSED else failed("a reason")
        return Check(one.name, CheckType(one.name, lambda _: found, ordinarily=ordinarily))

    return {name: answering(one) for name, one in CHECKS.items()}


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_a_check_that_may_pass_without_a_reason_has_words_for_it(name: str) -> None:
    bare = "passed()" in inspect.getsource(CHECKS[name].type.ask)
    assert bool(CHECKS[name].type.ordinarily) is bare
    assert not RAW.search(CHECKS[name].type.ordinarily)


@pytest.mark.heavy
@pytest.mark.parametrize("text", EXPRESSIONS)
@settings(max_examples=examples(30))
@given(VERDICTS)
def test_whatever_the_answers_a_step_and_a_hold_are_sentences(
    text: str, verdicts: Mapping[str, Verdict]
) -> None:
    step = Step(parse(text), text, (), State.REQUIRED)
    profile = Profile("toy", {State.OPERATIONAL: StateRules(transitions=(step,))})
    walked = walk(profile, situation(), checks(verdicts))

    sentences = [step.because for step in walked.transitions] + [hold.reason for hold in walked.holds]
    assert sentences
    for sentence in sentences:
        assert sentence
        assert not RAW.search(sentence), sentence


@given(st.sampled_from(EXPRESSIONS), VERDICTS)
def test_what_lets_an_expression_pass_is_among_its_own_answers_and_would_be_enough(
    text: str, verdicts: Mapping[str, Verdict]
) -> None:
    tree = parse(text)

    def answer(name: str) -> CheckAnswer:
        return CheckAnswer(name, verdicts[name], "")

    if evaluate(tree, answer) is not Verdict.PASSED:
        return
    found = {one.name: one.verdict for one in supporters(tree, answer)}
    assert set(found) <= set(names(tree))
    # With everything else unknown, it passes all the same.
    rest = CheckAnswer("", Verdict.UNKNOWN, "")
    assert (
        evaluate(tree, lambda name: CheckAnswer(name, found[name], "") if name in found else rest)
        is Verdict.PASSED
    )


def test_a_step_back_says_why_no_drain_is_required() -> None:
    walked = walk(DEFAULT, situation(held=record(State.REQUIRED)), CHECKS)

    assert [step.because for step in walked.transitions] == ["no event requires a drain"]
