"""Expressions over one number, such as `value <= 1 && value > 0`, for the check `prometheusInstant`.

The grammar is the part of gval, the language of maintenance-controller, that concerns numbers: decimal
numbers, `true`, `false`, `value`, brackets, `- !` before a part, `** * / % + -`, `< <= > >= == !=`, `&&`,
`||` and `a ? b : c`. Operators bind as in gval, from left to right. A result that is a number is true unless
it is 0. Nothing here can call, read or write anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from msgspec import Struct

LONGEST = 512
"""Characters of an expression."""

_DEEPEST = 32
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\*\*|&&|\|\||[<>=!]=|[-+*/%<>!?:()]))"
)
_STARTS = {"||": 20, "&&": 21}
_COMPARES = ("==", "!=", "<", "<=", ">", ">=")
_BINDS: Mapping[str, int] = {
    "?": 1,
    **_STARTS,
    **dict.fromkeys(_COMPARES, 40),
    "+": 120,
    "-": 120,
    "*": 150,
    "/": 150,
    "%": 150,
    "**": 200,
}

Value = float | bool


class ValueExpressionError(ValueError):
    """The text is no expression, or has no value. The message says what is wrong."""


class ValueExpression(Struct, frozen=True):
    """An expression that was read; `text` is how it was written."""

    text: str
    root: Part

    def holds(self, value: float) -> bool:
        """Return whether the expression is true for the value.

        Raises ValueExpressionError where it has no answer, such as for `value + true`.
        """
        return _truth(_evaluate(self.root, value))


class Constant(Struct, frozen=True):
    """A number, `true` or `false`."""

    value: Value


class Given(Struct, frozen=True):
    """The number that the expression is about."""


class Before(Struct, frozen=True):
    """`-` or `!` and the part behind it."""

    sign: str
    part: Part


class Between(Struct, frozen=True):
    """Two parts and the operator between them."""

    sign: str
    left: Part
    right: Part


class Choice(Struct, frozen=True):
    """`condition ? yes : no`."""

    condition: Part
    yes: Part
    no: Part


Part = Constant | Given | Before | Between | Choice


def parse_value_expression(text: str) -> ValueExpression:
    """Read an expression. Raises ValueExpressionError, with what can't be read."""
    if len(text) > LONGEST:
        raise ValueExpressionError(
            f"an expression has at most {LONGEST} characters, this one has {len(text)}"
        )
    reader = _Reader(text)
    part = reader.part(0)
    if reader.next is not None:
        raise ValueExpressionError(f"{text!r}: {reader.next!r} was not expected")
    return ValueExpression(text, part)


class _Reader:
    """Reads an expression from left to right; `next` is the next token, None at the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        tokens, position = [], 0
        while text[position:].strip():
            token = _TOKEN.match(text, position)
            if token is None:
                wrong = text[position:].strip()[0]
                raise ValueExpressionError(f"{text!r}: {wrong!r} can't stand in this expression")
            tokens.append(token[0].strip())
            position = token.end()
        self._tokens = tokens[::-1]
        self._depth = 0

    @property
    def next(self) -> str | None:
        return self._tokens[-1] if self._tokens else None

    def _take(self) -> str:
        if not self._tokens:
            raise ValueExpressionError(f"{self._text!r}: it ends where a number or `value` was expected")
        return self._tokens.pop()

    def part(self, binds: int) -> Part:
        """Read a part up to an operator that binds no more than `binds`."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueExpressionError(f"{self._text!r}: it is nested too deep")
        found = self._one()
        while self.next is not None and _BINDS.get(self.next, 0) > binds:
            sign = self._take()
            found = self._choice(found) if sign == "?" else Between(sign, found, self.part(_BINDS[sign]))
        self._depth -= 1
        return found

    def _choice(self, condition: Part) -> Part:
        yes = self.part(0)
        self._expect(":")
        return Choice(condition, yes, self.part(0))

    def _one(self) -> Part:
        token = self._take()
        if token in ("-", "!"):
            # As in gval it takes the next part only: -2 ** 2 is 4.
            return Before(token, self.part(max(_BINDS.values())))
        if token == "(":
            found = self.part(0)
            self._expect(")")
            return found
        if token[0].isdigit() or token[0] == ".":
            return Constant(float(token))
        if token == "value":
            return Given()
        if token in ("true", "false"):
            return Constant(token == "true")
        if token in _BINDS or token in (")", ":"):
            raise ValueExpressionError(f"{self._text!r}: a number or `value` was expected before {token!r}")
        raise ValueExpressionError(f"{self._text!r}: {token!r} is not known; the only name is `value`")

    def _expect(self, sign: str) -> None:
        if self.next != sign:
            raise ValueExpressionError(f"{self._text!r}: a {sign!r} is missing")
        self._take()


def _evaluate(part: Part, value: float) -> Value:
    match part:
        case Constant(constant):
            return constant
        case Given():
            return value
        case Before("-", inner):
            return -_number(_evaluate(inner, value), "-")
        case Before(_, inner):
            return not _truth(_evaluate(inner, value))
        case Choice(condition, yes, no):
            return _evaluate(yes if _truth(_evaluate(condition, value)) else no, value)
        case Between("&&", left, right):
            return _truth(_evaluate(left, value)) and _truth(_evaluate(right, value))
        case Between("||", left, right):
            return _truth(_evaluate(left, value)) or _truth(_evaluate(right, value))
        case Between("==" | "!=" as sign, left, right):
            given = _evaluate(left, value), _evaluate(right, value)
            if any(isinstance(each, bool) for each in given):
                same = _truth(given[0]) == _truth(given[1])
            else:
                same = given[0] == given[1]
            return same is (sign == "==")
        case Between(sign, left, right):
            terms = _evaluate(left, value), _evaluate(right, value)
            return _OPERATORS[sign](_number(terms[0], sign), _number(terms[1], sign))


def _number(value: Value, sign: str) -> float:
    if isinstance(value, bool):
        raise ValueExpressionError(f"`{sign}` needs numbers, not {str(value).lower()}")
    return value


def _truth(value: Value) -> bool:
    return value if isinstance(value, bool) else value != 0


def _divided(left: float, right: float) -> float:
    # As IEEE 754 and Go have it: no number, or one without end.
    if right == 0:
        return (
            math.nan
            if left == 0 or math.isnan(left)
            else math.copysign(math.inf, left) * math.copysign(1, right)
        )
    return left / right


def _rest(left: float, right: float) -> float:
    try:
        return math.fmod(left, right)
    except ValueError:
        return math.nan


def _power(left: float, right: float) -> float:
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and math.fmod(abs(right), 2) == 1 else math.inf
    except ValueError:
        return math.inf if left == 0 else math.nan


_OPERATORS: Mapping[str, Callable[[float, float], Value]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divided,
    "%": _rest,
    "**": _power,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
