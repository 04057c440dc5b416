"""The results of a plan's actions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Result(StrEnum):
    """How one action ended."""

    DONE = "done"
    LATER = "later"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one action. LATER: the cluster has changed, so the next pass decides again."""

    node: str
    action: str
    result: Result
    detail: str = ""
