"""What a metric is: a family of series, and one value. Features show their own, see `Process.families`."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Type(StrEnum):
    """The types of metrics."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    UNTYPED = "untyped"


class Family(Struct, frozen=True):
    """All series of one name. `unit` is the unit of the values, empty for a count and for 0 or 1.

    The name ends with the unit, and that of a counter with `_total`. `bounds` are the upper bounds of a
    histogram's buckets.
    """

    name: str
    type: Type
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    bounds: tuple[float, ...] = ()

    def __str__(self) -> str:
        return self.name


class Sample(Struct, frozen=True):
    """One value of one family, with the values of its labels in the order of the family."""

    family: Family
    value: float
    labels: tuple[str, ...] = ()
