"""The answer of a check expression: passed, failed or unknown.

Every check is evaluated, so that every reason is known. An unknown answer never makes a `!` pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.model.expression import All, AnyOf, Expression, Name, Not
from reconciler.model.plan import CheckAnswer, Verdict


def evaluate(tree: Expression, answer: Callable[[str], CheckAnswer]) -> Verdict:
    """Return the verdict of the expression, in three-valued logic."""
    match tree:
        case Name(name):
            return answer(name).verdict
        case Not(part):
            return _OPPOSITE[evaluate(part, answer)]
        case All(parts):
            return _worst([evaluate(part, answer) for part in parts], _FAILING_FIRST, Verdict.PASSED)
        case AnyOf(parts):
            return _worst([evaluate(part, answer) for part in parts], _PASSING_FIRST, Verdict.FAILED)


_OPPOSITE: Mapping[Verdict, Verdict] = {
    Verdict.PASSED: Verdict.FAILED,
    Verdict.FAILED: Verdict.PASSED,
    Verdict.UNKNOWN: Verdict.UNKNOWN,
}
_FAILING_FIRST = (Verdict.FAILED, Verdict.UNKNOWN, Verdict.PASSED)
_PASSING_FIRST = (Verdict.PASSED, Verdict.UNKNOWN, Verdict.FAILED)


def _worst(verdicts: list[Verdict], order: tuple[Verdict, ...], empty: Verdict) -> Verdict:
    return next((one for one in order if one in verdicts), empty)


def blockers(tree: Expression, answer: Callable[[str], CheckAnswer]) -> tuple[CheckAnswer, ...]:
    """Return the answers that keep the expression from passing, each once.

    A check behind a `!` blocks by passing.
    """
    found = _blockers(tree, answer, wanted=Verdict.PASSED)
    return tuple({blocker.name: blocker for blocker in found}.values())


def supporters(tree: Expression, answer: Callable[[str], CheckAnswer]) -> tuple[CheckAnswer, ...]:
    """Return the answers that let a passing expression pass, each once.

    A check behind a `!` does so by failing. Of the parts of an `||`, only those that pass count.
    """
    found = _supporters(tree, answer, wanted=Verdict.PASSED)
    return tuple({one.name: one for one in found}.values())


def _supporters(
    tree: Expression, answer: Callable[[str], CheckAnswer], *, wanted: Verdict
) -> list[CheckAnswer]:
    match tree:
        case Name(name):
            given = answer(name)
            return [given] if given.verdict is wanted else []
        case Not(part):
            return _supporters(part, answer, wanted=_OPPOSITE[wanted])
        case All(parts) | AnyOf(parts):
            agreeing = [part for part in parts if evaluate(part, answer) is wanted]
            return [one for part in agreeing for one in _supporters(part, answer, wanted=wanted)]


def _blockers(
    tree: Expression, answer: Callable[[str], CheckAnswer], *, wanted: Verdict
) -> list[CheckAnswer]:
    match tree:
        case Name(name):
            given = answer(name)
            return [] if given.verdict is wanted else [given]
        case Not(part):
            return _blockers(part, answer, wanted=_OPPOSITE[wanted])
        case All(parts) | AnyOf(parts):
            each = [_blockers(part, answer, wanted=wanted) for part in parts]
            enough = isinstance(tree, AnyOf) == (wanted is Verdict.PASSED)
            if enough and any(not part for part in each) and each:
                return []
            return [blocker for part in each for blocker in part]
