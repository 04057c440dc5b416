"""What a pass does about a node by name, how that ended, and why it does nothing.

Reports, logs and objects of features show the values of all these, so they never change.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Place(StrEnum):
    """When `act` performs a task of a node."""

    BEFORE = "before"
    """Before the node's patch. If it fails, nothing else is done about the node in this pass."""

    AFTER_DRAIN = "afterDrain"
    """Once the drains of the pass have begun."""

    END = "end"
    """After all writes of nodes and their Events, because it may be slow: no drain waits for it."""


class ActionKind(Struct, frozen=True):
    """A kind of action. Reports, logs and outcomes show the name, so it never changes.

    `words` say what it does, after "would" or "does". `place` is when tasks of this kind are performed.
    `most` of them may be without an answer at once. `gives_up` is why a pass tries no more of them once some
    have failed, empty if it tries all. `pauses`: if it fails, the node's patch is not tried in each pass.
    `deletes`: the node will be gone, so the ledger has to know of it first.
    """

    name: str
    words: str
    place: Place = Place.END
    most: int = 3
    gives_up: str = ""
    pauses: bool = False
    deletes: bool = False

    def __str__(self) -> str:
        return self.name


STOP_DRAIN = ActionKind("stop drain", "stop the drain")
CORDON = ActionKind("cordon", "cordon")
UNCORDON = ActionKind("uncordon", "uncordon")
RECORD = ActionKind("record", "update its annotation")
"""A change of only our keys on the node; an outcome names it more precisely (`outcome_name`)."""

PUBLISH = ActionKind("publish", "update its published state")
DRAIN = ActionKind("drain", "drain")
WRITE_LEDGER = ActionKind("write ledger", "write the ledger")

ACTIONS = (STOP_DRAIN, CORDON, UNCORDON, RECORD, PUBLISH, DRAIN, WRITE_LEDGER)
"""Those that are no tasks."""


class Result(StrEnum):
    """How one action ended, or RUNNING for a drain that goes on."""

    DONE = "done"
    RUNNING = "running"
    LATER = "later"
    FAILED = "failed"


class Outcome(Struct, frozen=True):
    """The result of one action. LATER: the cluster has changed, so the next pass decides again.

    `lost` is what did not stay of a node's patch, as `NodeWrite.changes` names it, also if the rest is done.
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
