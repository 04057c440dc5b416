"""Label selectors for nodes, pods and namespaces."""

from __future__ import annotations

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
                return self._compares(value)
            case _:
                return False

    def _compares(self, value: str | None) -> bool:
        try:
            difference = int(value or "") - int(self.values[0])
        except (ValueError, IndexError):
            return False
        return difference > 0 if self.operator == Operator.GT else difference < 0

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
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        """Write it as kubectl's `--selector` reads it; empty selects all."""
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING = LabelSelector()
