"""Check expressions: names joined by `&&`, `||`, `!` and brackets.

The grammar is that of maintenance-controller, but operators need no blanks around them.
"""

from __future__ import annotations

import re

from msgspec import Struct

_TOKEN = re.compile(r"\s*(&&|\|\||!|\(|\)|[A-Za-z_][A-Za-z0-9_]*)")


class ExpressionError(ValueError):
    """The text is not an expression. The message says where, and what is expected."""


class Name(Struct, frozen=True):
    """One check."""

    name: str


class Not(Struct, frozen=True):
    """The opposite; unknown stays unknown."""

    part: Expression


class All(Struct, frozen=True):
    """Passes when every part passes; an empty one passes."""

    parts: tuple[Expression, ...]


class AnyOf(Struct, frozen=True):
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
