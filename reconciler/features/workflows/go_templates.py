"""Messages of workflows: templates as maintenance-controller has them, and the fields that they can name.

This is the part of Go's text/template that messages use: fields (`.State`, `.Node.Name`), `index`, `print`,
`println`, `printf`, `len`, comparisons, pipelines, and `if` with `else`. Loops, variables and functions
that call code do not exist here, so a template takes a bounded time. `mistake_in` names what can't be
rendered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct

from reconciler.calendar.values import literal
from reconciler.model import limits
from reconciler.model.messages import LONGEST
from reconciler.model.moments import to_text
from reconciler.model.node import Node

_DEEPEST = 20
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`')
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\\n])*"|`[^`]*`)|(?P<field>(?:\.[A-Za-z_][A-Za-z0-9_]*)+|\.)"""
    r"""|(?P<number>[+-]?[0-9]{1,9}(?![A-Za-z0-9_.]))|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[()|]))"""
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_VERB = re.compile(r"%(.?)")

Value = Any
"""A text, a number, a flag, None, a mapping of texts, or `Fields`."""


class TemplateRefused(ValueError):
    """The template can't be rendered. The message says why."""


class Fields(Struct, frozen=True):
    """An object with fields by name. Where a template prints the object itself, it gets `shown`."""

    fields: Mapping[str, Value]
    shown: str = ""

    def __str__(self) -> str:
        """Return the text for the object itself."""
        return self.shown


Escape = Callable[[str], str]


class _Field(Struct, frozen=True):
    path: tuple[str, ...]


class _Literal(Struct, frozen=True):
    value: Value


class _Call(Struct, frozen=True):
    name: str
    arguments: tuple[_Term, ...]


_Term = _Field | _Literal | _Call


class _If(Struct, frozen=True):
    term: _Term
    then: tuple[_Part, ...]
    otherwise: tuple[_Part, ...] = ()


_Part = str | _Term | _If


def mistake_in(text: str, known: Fields) -> str:
    """Return what can't be rendered, empty if everything can. `known` has all fields, with any values."""
    try:
        for term in _terms(_parsed(text)):
            if isinstance(term, _Field):
                _field(term.path, known)
    except TemplateRefused as error:
        return str(error)
    return ""


def rendered(text: str, values: Fields, escape: Escape = str) -> str:
    """Return what the template makes of the values, at most LONGEST characters; raises TemplateRefused.

    `escape` is called with each value, and not with the text of the template.
    """
    return limits.text("".join(_rendered(_parsed(text), values, escape)), LONGEST)


def rendered_by_lines(text: str, values: Fields, escape: Escape = str) -> str:
    """Return what the template makes line by line; a line that can't be rendered stays as it is written.

    A template that a person wrote for Go may have one construct that does not exist here. The other lines,
    such as the command that approves a drain, still help.
    """
    made = []
    for line in text.splitlines():
        try:
            made.append(rendered(line, values, escape))
        except TemplateRefused:
            made.append(line)
    return limits.text("\n".join(made).strip(), LONGEST)


def indexed(text: str, *path: str) -> frozenset[str]:
    """Return the keys that the template reads of the mapping at this path; none if it can't be rendered."""
    found: set[str] = set()
    try:
        for term in _terms(_parsed(text)):
            if isinstance(term, _Field) and term.path[: len(path)] == path:
                found |= set(term.path[len(path) : len(path) + 1])
            if isinstance(term, _Call) and term.name == "index" and term.arguments[0] == _Field(path):
                found |= {str(one.value) for one in term.arguments[1:] if isinstance(one, _Literal)}
    except TemplateRefused:
        return frozenset()
    return frozenset(found)


def printed_whole(text: str, known: Fields) -> tuple[str, ...]:
    """Return the mappings that the template uses other than by their keys; none if it can't be rendered.

    Go prints `map[…]` with all keys of a node. Here a mapping has only the keys that the settings use, so its
    whole, and how many keys it has, are something else.
    """
    whole: set[str] = set()
    try:
        parts = _parsed(text)
        terms = list(_terms(parts))
        by_key = [term.arguments[0] for term in terms if isinstance(term, _Call) and term.name == "index"]
        for term in terms:
            if isinstance(term, _Field) and isinstance(_field(term.path, known), Mapping):
                whole |= {f".{'.'.join(term.path)}"} if terms.count(term) > by_key.count(term) else set()
    except TemplateRefused:
        return ()
    return tuple(sorted(whole))


# Reading.


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[_Part, ...]:
    pieces = list(_pieces(text))
    parts, left = _block(pieces, 0)
    if left:
        raise TemplateRefused(f"`{left[0]}` without `if`")
    return parts


def _pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the text and the actions of a template, each with whether it is an action."""
    at, trimmed = 0, False
    while (start := text.find("{{", at)) >= 0:
        before = text[at:start].lstrip() if trimmed else text[at:start]
        end = _end(text, start + 2)
        inside = text[start + 2 : end]
        at, trimmed = end + 2, inside[-2:].strip() == "-" and len(inside) > 1
        if inside[:1] == "-" and inside[1:2].isspace():
            before, inside = before.rstrip(), inside[1:]
        yield False, before
        action = (inside[:-1] if trimmed else inside).strip()
        if not action.startswith("/*"):
            yield True, action
    yield False, text[at:].lstrip() if trimmed else text[at:]


def _end(text: str, at: int) -> int:
    """Return where the action ends that begins here. A text in quotes may have `}}`, and so may a comment."""
    if text[at:].lstrip("- \t\n").startswith("/*"):
        at = text.find("*/", at)
    while 0 <= at < len(text):
        if text.startswith("}}", at):
            return at
        quoted = _STRING.match(text, at)
        at = quoted.end() if quoted is not None else at + 1
    raise TemplateRefused("a `{{` has no `}}`")


def _block(pieces: list[tuple[bool, str]], depth: int) -> tuple[tuple[_Part, ...], list[str]]:
    """Read up to an `end` or `else`, and return the parts with the words of that action."""
    if depth > _DEEPEST:
        raise TemplateRefused(f"it is nested deeper than {_DEEPEST} levels")
    parts: list[_Part] = []
    while pieces:
        action, text = pieces.pop(0)
        if not action:
            parts += [text] if text else []
            continue
        word, _, rest = text.partition(" ")
        if word in ("end", "else"):
            return tuple(parts), [word, rest.strip()]
        if word == "if":
            parts.append(_condition(rest, pieces, depth))
            continue
        if word in _MISSING or text.startswith("$") or ":=" in text:
            raise TemplateRefused(f"{literal(text)}: loops, variables and other templates do not exist here")
        parts.append(_pipeline(text))
    if depth:
        raise TemplateRefused("an `if` has no `end`")
    return tuple(parts), []


_MISSING = frozenset({"range", "with", "define", "template", "block", "break", "continue"})


def _condition(text: str, pieces: list[tuple[bool, str]], depth: int) -> _If:
    term = _pipeline(text)
    then, (word, rest) = _block(pieces, depth + 1)
    if word == "end":
        return _If(term, then)
    if rest:
        first, _, more = rest.partition(" ")
        if first != "if":
            raise TemplateRefused(f"{literal(f'else {rest}')}: after `else` comes nothing or `if`")
        return _If(term, then, (_condition(more, pieces, depth + 1),))
    otherwise, (word, _) = _block(pieces, depth + 1)
    if word != "end":
        raise TemplateRefused("an `if` has a second `else`")
    return _If(term, then, otherwise)


def _pipeline(text: str) -> _Term:
    tokens: list[tuple[str, str]] = []
    written, at = text.rstrip(), 0
    while at < len(written):
        token = _TOKEN.match(written, at)
        if token is None or token.lastgroup is None:
            rest = written[at:].strip()[:20]
            raise TemplateRefused(f"{literal(written)} can't be read from {literal(rest)} on")
        tokens.append((token.lastgroup, token[token.lastgroup]))
        at = token.end()
    term = _piped(tokens, 0)
    if tokens:
        raise TemplateRefused(f"{literal(text)}: there is a `)` too many")
    return term


def _piped(tokens: list[tuple[str, str]], depth: int) -> _Term:
    """Read commands joined by `|`: the value of each is the last argument of the next."""
    if depth > _DEEPEST:
        raise TemplateRefused(f"it is nested deeper than {_DEEPEST} levels")
    term = _command(tokens, (), depth)
    while tokens and tokens[0] == ("sign", "|"):
        tokens.pop(0)
        term = _command(tokens, (term,), depth)
    return term


def _command(tokens: list[tuple[str, str]], piped: tuple[_Term, ...], depth: int) -> _Term:
    if not tokens or tokens[0] in (("sign", "|"), ("sign", ")")):
        raise TemplateRefused("a value is missing")
    kind, text = tokens[0]
    name = text if kind == "word" and text not in _CONSTANTS else ""
    if name:
        tokens.pop(0)
        if name not in _FUNCTIONS:
            raise TemplateRefused(f"there is no function {literal(name)}; there are {', '.join(_FUNCTIONS)}")
    terms: list[_Term] = []
    while tokens and tokens[0] not in (("sign", "|"), ("sign", ")")):
        terms.append(_operand(tokens, depth))
    given = (*terms, *piped)
    if name:
        least, most, _ = _FUNCTIONS[name]
        if not least <= len(given) <= most:
            raise TemplateRefused(f"{name} has {len(given)} arguments")
        return _Call(name, given)
    if len(given) > 1:
        raise TemplateRefused("a value can't be called like a function")
    return given[0]


def _operand(tokens: list[tuple[str, str]], depth: int) -> _Term:
    kind, text = tokens.pop(0)
    match kind:
        case "field":
            return _Field(tuple(part for part in text.split(".") if part))
        case "number":
            return _Literal(int(text))
        case "text" if text.startswith("`"):
            return _Literal(text[1:-1])
        case "text":
            return _Literal(_ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), text[1:-1]))
        case "sign":
            term = _piped(tokens, depth + 1)
            if not tokens:
                raise TemplateRefused("a `)` is missing")
            tokens.pop(0)
            return term
    if text in _CONSTANTS:
        return _Literal(_CONSTANTS[text])
    raise TemplateRefused(f"the function {literal(text)} needs brackets around it here")


_CONSTANTS: Mapping[str, Value] = {"true": True, "false": False, "nil": None}


def _terms(parts: Sequence[_Part]) -> Iterator[_Term]:
    """Yield every term of the template, those inside of others too."""
    for part in parts:
        if isinstance(part, _If):
            yield from _terms((part.term, *part.then, *part.otherwise))
        elif not isinstance(part, str):
            yield part
            yield from _terms(part.arguments if isinstance(part, _Call) else ())


# Rendering.


def _rendered(parts: Sequence[_Part], values: Fields, escape: Escape) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, _If):
            chosen = part.then if _true(_value(part.term, values)) else part.otherwise
            yield from _rendered(chosen, values, escape)
        else:
            yield escape(_text(_value(part, values)))


def _value(term: _Term, values: Fields) -> Value:
    if isinstance(term, _Literal):
        return term.value
    if isinstance(term, _Field):
        return _field(term.path, values)
    found = [_value(one, values) for one in term.arguments]
    return _FUNCTIONS[term.name][2](*found)


def _field(path: tuple[str, ...], values: Fields) -> Value:
    here: Value = values
    for name in path:
        if isinstance(here, Fields):
            if name not in here.fields:
                raise TemplateRefused(
                    f"there is no field {literal('.' + '.'.join(path))}; there are "
                    f"{', '.join('.' + one for one in here.fields)}"
                )
            here = here.fields[name]
        elif isinstance(here, Mapping):
            here = here.get(name)
        else:
            raise TemplateRefused(f"{literal('.' + '.'.join(path))}: a text has no fields")
    return here


def _text(value: Value) -> str:
    """Return a value as Go prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{value[key]}' for key in sorted(value))}]"
    return "<no value>" if value is None else str(value)


def _true(value: Value) -> bool:
    return True if isinstance(value, Fields) else bool(value)


def _index(found: Value, *keys: Value) -> Value:
    for key in keys:
        if not isinstance(found, Mapping) or not isinstance(key, str):
            raise TemplateRefused("index needs a mapping, such as .Node.Labels, and a key")
        found = found.get(key, "")
    return found


def _len(value: Value) -> int:
    if isinstance(value, str):
        return len(value.encode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return len(value)
    raise TemplateRefused("len needs a text or a mapping")


def _printf(form: Value, *given: Value) -> str:
    left = list(given)

    def one(found: re.Match[str]) -> str:
        verb = found[1]
        if verb == "%":
            return "%"
        if verb not in ("s", "v", "q", "d", "t"):
            raise TemplateRefused(f"printf has no {literal(found[0])}; it has %s, %v, %q, %d and %t")
        if not left:
            raise TemplateRefused("printf has too few arguments")
        text = _text(left.pop(0))
        return f'"{text}"' if verb == "q" else text

    made = _VERB.sub(one, _text(form))
    if left:
        raise TemplateRefused("printf has too many arguments")
    return made


def _print(*given: Value) -> str:
    """Join the values; a blank stands between two that are no texts."""
    made = ""
    for place, one in enumerate(given):
        blank = place and not isinstance(one, str) and not isinstance(given[place - 1], str)
        made += (" " if blank else "") + _text(one)
    return made


def _first(truth: bool, *values: Value) -> Value:
    return next((value for value in values if _true(value) is truth), values[-1])


def _equal(first: Value, *others: Value) -> bool:
    return any(type(first) is type(one) and _text(first) == _text(one) for one in others)


_MANY = 20
_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Value]]] = {
    "and": (1, _MANY, partial(_first, False)),
    "eq": (2, _MANY, _equal),
    "index": (2, _MANY, _index),
    "len": (1, 1, _len),
    "ne": (2, 2, lambda one, other: not _equal(one, other)),
    "not": (1, 1, lambda value: not _true(value)),
    "or": (1, _MANY, partial(_first, True)),
    "print": (0, _MANY, _print),
    "printf": (1, _MANY, _printf),
    "println": (0, _MANY, lambda *given: " ".join(map(_text, given)) + "\n"),
}
"""The fewest and the most arguments of each function, and what it does."""


class About(Struct, frozen=True):
    """What a message is about: a profile of a node in its state, since `changed` (UTC).

    `last` is the profile of the node that changed last. `in_maintenance` is whether any profile of the node
    is in maintenance.
    """

    profile: str
    state: str
    changed: datetime
    last: str = ""
    in_maintenance: bool = False
    log_details: bool = False


def message_fields(node: Node, about: About) -> Fields:
    """Return the fields about this node.

    `.Profile` is a text in maintenance-controller, whose documentation has `.Profile.Current` and
    `.Profile.Last`. All three can be used here.
    """
    metadata = {"Name": node.name, "UID": node.uid, "Labels": node.labels, "Annotations": node.annotations}
    spec = Fields({"ProviderID": node.provider_id, "Unschedulable": node.unschedulable})
    fields = {**metadata, "ObjectMeta": Fields(metadata, node.name), "Spec": spec}
    return Fields(
        {
            "State": about.state,
            "Profile": Fields({"Current": about.profile, "Last": about.last}, about.profile),
            "Node": Fields(fields, node.name),
            "InMaintenance": about.in_maintenance,
            "LastTransition": to_text(about.changed),
            "LogDetails": about.log_details,
        }
    )


KNOWN = message_fields(Node("node", "uid", "1"), About("profile", "operational", limits.EARLIEST))
"""All fields, with any values: what a template can name."""
