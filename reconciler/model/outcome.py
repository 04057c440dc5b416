"""What a pass does about a node by name, how that ended, and why it does nothing.

Reports, logs and NodeMaintenance objects show the values of all these, so they never change.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class ActionName(StrEnum):
    """One action. Reports, logs and outcomes show the values, so they never change."""

    STOP_DRAIN = "stop drain"
    CORDON = "cordon"
    UNCORDON = "uncordon"
    RECORD = "record"
    """A change of only our keys on the node; an outcome names it more precisely (`outcome_name`)."""
    PUBLISH = "publish"
    DRAIN = "drain"
    TAKE_LEASE = "take lease"
    CHANGE_HYPERVISOR = "change hypervisor"
    PERFORM_MAINTENANCE = "perform maintenance"
    SHUT_DOWN = "shut down"
    POWER_OFF = "power off"
    POWER_ON = "power on"
    RAISE_POOL = "raise pool"
    REPLACE_MACHINE = "replace machine"
    CONDITIONS = "conditions"
    TAINT = "taint"
    LABELS = "labels"
    NODE_MAINTENANCE = "nodemaintenance"
    WRITE_LEDGER = "write ledger"
    RUN_HOOK = "run hook"


class Result(StrEnum):
    """How one action ended, or RUNNING for a drain that goes on."""

    DONE = "done"
    RUNNING = "running"
    LATER = "later"
    FAILED = "failed"


class Outcome(Struct, frozen=True):
    """The result of one action. LATER: the cluster has changed, so the next pass decides again.

    `lost` is what did not stay of a node's patch, as `own.changes` names it, also if the rest of it is done.
    `changed` is whether the node was not as the patch expects it: nothing was written, and the same pass
    decides again.
    """

    node: str
    action: str
    result: Result
    detail: str = ""
    lost: tuple[str, ...] = ()
    changed: bool = False

    @property
    def notable(self) -> bool:
        """Whether people have to hear of it: the action failed, or was put off."""
        return self.result in (Result.FAILED, Result.LATER)


class WaitsFor(StrEnum):
    """What a hold waits for, as other tools distinguish it."""

    PERMISSION = "permission"
    """A time or a mode in which drains may start."""

    TURN = "turn"
    """Other nodes: nothing else prevents the start."""

    OTHER = "other"
    """Anything else."""
