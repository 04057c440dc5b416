"""The results of a plan's actions."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Result(StrEnum):
    """How one action ended, or RUNNING for a drain that goes on."""

    DONE = "done"
    RUNNING = "running"
    LATER = "later"
    FAILED = "failed"


class Outcome(Struct, frozen=True):
    """The result of one action. LATER: the cluster has changed, so the next pass decides again.

    `lost` is what did not stay of a node's patch, as `own.changes` names it, also if the rest of it is done.
    """

    node: str
    action: str
    result: Result
    detail: str = ""
    lost: tuple[str, ...] = ()

    @property
    def notable(self) -> bool:
        """Whether people have to hear of it: the action failed, or was put off."""
        return self.result in (Result.FAILED, Result.LATER)
