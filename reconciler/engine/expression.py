"""Check expressions: names joined by `&&`, `||`, `!` and brackets, answered with passed, failed or unknown.

The grammar is that of maintenance-controller, but operators need no blanks around them. Every check is
evaluated, so that every reason is known. An unknown answer never makes a `!` pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reconciler.model.plan import CheckAnswer, Verdict

_TOKEN = re.compile(r"\s*(&&|\|\||!|\(|\)|[A-Za-z_][A-Za-z0-9_]*)")


class ExpressionError(ValueError):
    """The text is not an expression. The message says where, and what is expected."""


@dataclass(frozen=True, slots=True)
class Name:
    """One check."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown stays unknown."""

    part: Expression


@dataclass(frozen=True, slots=True)
class All:
    """Passes when every part passes; an empty one passes."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Passes when one part passes."""

    parts: tuple[Expression, ...]


Expression = Name | Not | All | AnyOf


def parse(text: str) -> Expression:
    """Read an expression; an empty text always passes. Raises ExpressionError."""
    tokens = _tokens(text)
    if not tokens:
        return All(())
    tree, rest = _any(tokens, text)
    if rest:
        raise ExpressionError(f"{text!r}: {rest[0]!r} was not expected")
    return tree


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if found is None:
            raise ExpressionError(
                f"{text!r}: {text[position:].strip()[0]!r} can't stand in a check expression"
            )
        tokens.append(found[1])
        position = found.end()
    return tokens


def _any(tokens: list[str], text: str) -> tuple[Expression, list[str]]:
    part, rest = _all(tokens, text)
    parts = [part]
    while rest and rest[0] == "||":
        part, rest = _all(rest[1:], text)
        parts.append(part)
    return (parts[0] if len(parts) == 1 else AnyOf(tuple(parts))), rest


def _all(tokens: list[str], text: str) -> tuple[Expression, list[str]]:
    part, rest = _one(tokens, text)
    parts = [part]
    while rest and rest[0] == "&&":
        part, rest = _one(rest[1:], text)
        parts.append(part)
    return (parts[0] if len(parts) == 1 else All(tuple(parts))), rest


def _one(tokens: list[str], text: str) -> tuple[Expression, list[str]]:
    if not tokens:
        raise ExpressionError(f"{text!r}: it ends where a check was expected")
    first, rest = tokens[0], tokens[1:]
    if first == "!":
        part, rest = _one(rest, text)
        return Not(part), rest
    if first == "(":
        part, rest = _any(rest, text)
        if not rest or rest[0] != ")":
            raise ExpressionError(f"{text!r}: a ')' is missing")
        return part, rest[1:]
    if first in ("&&", "||", ")"):
        raise ExpressionError(f"{text!r}: a check was expected before {first!r}")
    return Name(first), rest


def names(tree: Expression) -> tuple[str, ...]:
    """Return the names of all checks, in the order of their first use."""
    match tree:
        case Name(name):
            return (name,)
        case Not(part):
            return names(part)
        case All(parts) | AnyOf(parts):
            return tuple(dict.fromkeys(name for part in parts for name in names(part)))


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
    return min(verdicts, key=order.index, default=empty)


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
