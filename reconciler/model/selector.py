"""Label selectors: which nodes, pods or namespaces something is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

KEY = r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
"""Regular expressions for a label's key and value (k8s.io/apimachinery, pkg/util/validation)."""


class Operator(StrEnum):
    """What a requirement asks of a label. Gt and Lt are for the affinity of nodes alone."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. An operator that we don't know is kept as it came, and met by nothing."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it, as k8s.io/apimachinery's labels.Requirement.Matches has it."""
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


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements together; none selects everything (metav1.LabelSelector)."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def of(cls, labels: Mapping[str, str], *requirements: Requirement) -> Self:
        """Return what selects these very labels, and meets the requirements too."""
        equal = (Requirement(key, Operator.IN, (value,)) for key, value in labels.items())
        return cls((*equal, *requirements))

    @property
    def selects_all(self) -> bool:
        """Whether nothing is asked."""
        return not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        """Write it as kubectl's `--selector` reads it; empty selects all."""
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING = LabelSelector()
