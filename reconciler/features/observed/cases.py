"""What would have become of announced maintenance, had the mode been Enforce: one value for each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

from reconciler.features.observed import NAME
from reconciler.kubernetes.kept_lines import LineKind
from reconciler.model.limits import LATEST, count_of
from reconciler.model.moments import to_text
from reconciler.model.values import Name, Written, decoded, encoded

MOST_STAYING = 5
"""Budgets, or pods without one, that a case names."""


class Fate(StrEnum):
    """What would have become of a case. Documents show the values."""

    IN_TIME = "in time"
    """Its node would have been drained before the platform came."""

    MISSED = "missed"
    """Its drain would have begun too late, or not at all."""

    BLOCKED = "blocked"
    """Its drain would have begun in time, and pods would have stayed."""

    NOT_KNOWN = "not known"
    """Its drain would have begun in time, and the pods were not read."""

    CALLED_OFF = "called off"
    """The platform withdrew it before its drain would have begun."""

    AHEAD = "ahead"
    """Its drain has yet to begin."""


class ObservedCase(Struct, frozen=True):
    """Announced maintenance of a node, from the first pass that saw it until it is over; moments are UTC.

    `announced` is when that pass saw it. `kind` is the most disruptive kind of its events, or the type of
    a condition. `pool_label` is the label that names its pool. `key` tells it from a later one of the
    same node: its ID, or else its first moment. `sources` have reported them. `date` is when the platform
    may start, None without a date. `begins` is when the drain would begin, and once it has `begun` when
    it would have. `late` says in a few words why it would have begun too late or not at all, empty if it
    would not, and `because` says the same, or why pods stay, in a sentence. `stays` names the
    PodDisruptionBudgets that would keep pods on the node (`PDB shop/ledger`), or the pods themselves.
    `cleared`: a pass saw that nothing kept them any more. `struck` is when the platform started, and
    `pods` how many pods were on the node then, or are now; None is not known. `over` is when nothing was
    announced any more.
    """

    announced: datetime
    node: Name
    uid: Name
    kind: Name
    pool: Written[Name] = ""
    pool_label: Name = ""
    key: Written[Name] = ""
    sources: tuple[Name, ...] = ()
    date: datetime | None = None
    begins: datetime | None = None
    begun: Written[bool] = False
    late: Written[Name] = ""
    because: Written[str] = ""
    stays: Written[Annotated[tuple[Name, ...], Meta(max_length=MOST_STAYING)]] = ()
    cleared: Written[bool] = False
    pods: int | None = None
    struck: datetime | None = None
    over: datetime | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """What is the same in each line about the case, whichever process writes it."""
        return self.uid or self.node, self.key or to_text(self.announced)

    @property
    def fate(self) -> Fate:
        """What would have become of it, as far as is known."""
        if self.over is not None and self.struck is None and (self.late or not self.begun):
            return Fate.CALLED_OFF
        if self.late:
            return Fate.MISSED
        if not self.begun:
            return Fate.AHEAD
        if self.cleared:
            return Fate.IN_TIME
        return Fate.BLOCKED if self.stays else Fate.NOT_KNOWN

    @property
    def would(self) -> str:
        """What would have been done, in words; moments are UTC."""
        if self.begun and self.begins is not None:
            return f"drained from {to_text(self.begins)} on"
        if self.over is not None or self.struck is not None:
            return "not drained"
        return f"drained from {to_text(self.begins)} on" if self.begins is not None else "no start is planned"

    @property
    def why(self) -> str:
        """Why it would not have been in time, in words; empty if it would have been."""
        if self.fate is Fate.MISSED:
            return self.because or self.late
        if self.fate is Fate.BLOCKED:
            return self.because or f"kept by {', '.join(self.stays)}"
        return "its pods were not read" if self.fate is Fate.NOT_KNOWN else ""

    @property
    def happened(self) -> str:
        """What the platform did, in words; moments are UTC."""
        if self.struck is not None:
            with_pods = f" with {count_of(self.pods, 'pod')} on it" if self.pods is not None else ""
            return f"{self.kind} at {to_text(self.struck)}{with_pods}"
        if self.over is not None:
            return f"nothing: it was gone at {to_text(self.over)}"
        return f"{self.kind} at {to_text(self.date)} at the earliest" if self.date is not None else "no date"


class Stretch(Struct, frozen=True):
    """A time in which the mode was Observe; `until` is None while it is (UTC)."""

    since: datetime
    until: datetime | None = None


Kept = ObservedCase | Stretch
"""A line of what is kept."""


def at(line: Kept) -> datetime:
    """Return the moment of a line (UTC): each counts from its end, so that what goes on is kept."""
    if isinstance(line, Stretch):
        return line.until or LATEST
    return line.over or line.struck or line.announced


def seen_until(lines: Iterable[Kept], otherwise: datetime) -> datetime:
    """Return the last moment of which lines tell (UTC); a stretch that goes on tells of its begin alone."""
    moments = (line.until or line.since if isinstance(line, Stretch) else at(line) for line in lines)
    return max(moments, default=otherwise)


def identity(line: Kept) -> tuple[str, str]:
    """Return what is the same in each line about one case, or about one stretch."""
    return ("", to_text(line.since)) if isinstance(line, Stretch) else line.identity


def to_fields(line: Kept) -> dict[str, Any]:
    """Return the fields of a line; moments are RFC 3339 in UTC. That of a case has its `fate` as well."""
    if isinstance(line, Stretch):
        return {"observes": True, **encoded(line)}
    return {**encoded(line), "fate": line.fate.value}


def from_fields(fields: Mapping[str, Any]) -> Kept:
    """Return what the fields of a line say. Raises ValueError, which names the field."""
    if not isinstance(fields, Mapping):
        raise ValueError("it is no object")
    return decoded(Stretch, fields) if fields.get("observes") is True else decoded(ObservedCase, fields)


OBSERVED_CASES: LineKind[Kept] = LineKind(
    NAME, "observed cases", "what is observed from then on is kept", at, identity, to_fields, from_fields
)
