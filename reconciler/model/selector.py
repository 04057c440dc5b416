"""Label selectors, and how they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from msgspec import Struct

KEY = r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
"""Regular expressions for a label's key and value (k8s.io/apimachinery, pkg/util/validation)."""


class Operator(StrEnum):
    """The operator of a requirement. Only the affinity of nodes uses Gt and Lt."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class Requirement(Struct, frozen=True):
    """One condition on one label. An unknown operator is kept unchanged, and nothing matches it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels match, as in labels.Requirement.Matches of k8s.io/apimachinery."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GT | Operator.LT:
                try:
                    difference = int(value or "") - int(self.values[0])
                except (ValueError, IndexError):
                    return False
                return difference > 0 if self.operator == Operator.GT else difference < 0
            case _:
                return False

    def __str__(self) -> str:
        """Write it as kubectl's `--selector` reads it."""
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
        return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"


class LabelSelector(Struct, frozen=True):
    """All requirements together; none selects everything (metav1.LabelSelector)."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def of(cls, labels: Mapping[str, str], *requirements: Requirement) -> Self:
        """Return a selector for exactly these labels and these requirements."""
        equal = (Requirement(key, Operator.IN, (value,)) for key, value in labels.items())
        return cls((*equal, *requirements))

    @property
    def selects_all(self) -> bool:
        """Whether there is no requirement."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels match every requirement."""
        return not self.requirements or all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        """Write it as kubectl's `--selector` reads it; empty selects all."""
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING = LabelSelector()


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
