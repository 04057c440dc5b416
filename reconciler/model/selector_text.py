"""Label selectors as kubectl's `--selector` takes them: `a=b,c!=d,e in (x,y),f notin (z),g,!h`."""

from __future__ import annotations

import re

from reconciler.model.selector import KEY, VALUE, LabelSelector, Operator, Requirement

_SET = re.compile(rf"\s*({KEY})\s+(in|notin)\s*\(([^()]*)\)\s*")
_EQUAL = re.compile(rf"\s*({KEY})\s*(==|=|!=)\s*({VALUE})\s*")
_BARE = re.compile(rf"\s*(!?)\s*({KEY})\s*")


def parse_selector_text(text: str) -> LabelSelector:
    """Read a selector (k8s.io/apimachinery pkg/labels, Parse); an empty text selects everything.

    Raises ValueError that says what could not be read.
    """
    requirements: list[Requirement] = []
    rest = text
    while rest.strip():
        requirement, end = _one(rest, text)
        requirements.append(requirement)
        rest = rest[end:]
        if rest and (rest[0] != "," or not rest[1:].strip()):
            raise ValueError(f"selector {text!r}: {rest!r} was not expected")
        rest = rest[1:]
    return LabelSelector(tuple(requirements))


def _one(rest: str, text: str) -> tuple[Requirement, int]:
    if found := _SET.match(rest):
        values = tuple(part.strip() for part in found[3].split(","))
        if not all(re.fullmatch(VALUE, value) for value in values):
            raise ValueError(f"selector {text!r}: ({found[3]}) is no list of label values")
        operator = Operator.IN if found[2] == "in" else Operator.NOT_IN
        return Requirement(found[1], operator, values), found.end()
    if found := _EQUAL.match(rest):
        operator = Operator.NOT_IN if found[2] == "!=" else Operator.IN
        return Requirement(found[1], operator, (found[3],)), found.end()
    if found := _BARE.match(rest):
        return Requirement(found[2], Operator.DOES_NOT_EXIST if found[1] else Operator.EXISTS), found.end()
    raise ValueError(
        f"selector {text!r}: {rest!r} can't be read; write key=value, key!=value or key in (a,b)"
    )
