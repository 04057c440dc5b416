"""What goes wrong between the program and the API server, and moves that make it go wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from reconciler.model.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    LockLost,
    Rejected,
    TooManyRequests,
    Unreachable,
)
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.world import World
from tests.explore.history import move
from tests.explore.laws import Laws

if TYPE_CHECKING:
    from tests.explore.play import Play

_BEFORE: dict[str, ClusterError] = {
    "409": Conflict("the object has been modified", status=409),
    "429": TooManyRequests("the server asks for patience", status=429, retry_after=2),
    "500": Unreachable("500 until the retries ended", status=500),
    "403": Forbidden("forbidden", status=403),
    "422": Rejected("invalid", status=422),
}
_KINDS = (*_BEFORE, "kill before", "kill after", "lost answer")
_WRITES = tuple(f"{kind} at {number}" for number in (1, 2, 3, 5) for kind in _KINDS)
_READS = ("nodes", "pods", "agents", "remediator", "ledger", "namespaces", "maintenances", "node", "budgets")

_NEEDED = ("nodes", "ledger")
"""What no pass can go on without; anything else harms what it is about."""


@dataclass(slots=True)
class _Waiting:
    """A fault that happens at a write from now on: at the next one for 1."""

    kind: str
    at: int


class Faults:
    """The hooks of a world's API: they raise what waits, and let the laws see the rest."""

    def __init__(self, world: World, laws: Laws) -> None:
        self._laws = laws
        self._waiting: list[_Waiting] = []
        self._blind: Counter[str] = Counter()
        self._after = ""
        self._off = False
        self.admit: Callable[[Call], ClusterError | None] = lambda _: None
        """Says why a webhook refuses a request, None if it admits it."""
        self.escapes: int | None = None
        """How many writes of a process that has lost its lock still go out, None while it has it."""
        self.one_pass = False
        """Whether the process that runs is the one that has lost its lock."""
        self.struck = False
        """Whether a fault has happened since the pass began."""
        self.ends_pass = False
        """Whether a read has failed without which no pass can go on."""
        world.api.before_write = self._before_write
        world.api.after_write = self._after_write
        world.api.before_read = self._before_read

    def arm(self, kind: str, at: int) -> None:
        """Let this happen at one of the next writes."""
        self._waiting.append(_Waiting(kind, at))

    def blind(self, what: str) -> None:
        """Let the next read of this fail."""
        self._blind[what] += 1

    def lose_lock(self, escapes: int) -> None:
        """Let the next pass be the last of a process whose lock is lost; so many writes still go out."""
        self.one_pass = True
        self.escapes = escapes

    def end(self) -> None:
        """Let nothing go wrong from now on."""
        self._waiting.clear()
        self._blind.clear()
        self.escapes = None

    def begin(self) -> None:
        """Begin a pass."""
        self.struck = self.ends_pass = False
        if not self.one_pass:
            self.escapes = None

    @contextmanager
    def off(self) -> Iterator[None]:
        """Let a person write, who meets no faults."""
        self._off = self._laws.by_hand = True
        try:
            yield
        finally:
            self._off = self._laws.by_hand = False

    def _before_write(self, call: Call) -> None:
        # The write before may have been refused, so that its fault is not due any more.
        self._after = ""
        if self._off:
            return
        self._laws.asked(call)
        refused = self.admit(call)
        if refused is not None:
            raise refused
        if self.escapes is not None:
            if self.escapes <= 0:
                raise LockLost("another process holds the lock")
            self.escapes -= 1
        for one in self._waiting:
            one.at -= 1
        due = next((one for one in self._waiting if one.at <= 0), None)
        if due is None:
            return
        self._waiting.remove(due)
        self.struck = True
        if due.kind == "kill before":
            raise ProcessKilled
        if due.kind in _BEFORE:
            raise _again(_BEFORE[due.kind])
        self._after = due.kind

    def _after_write(self, call: Call) -> None:
        self._laws.wrote(call)
        kind, self._after = self._after, ""
        if kind == "kill after":
            raise ProcessKilled
        if kind:
            raise Unreachable("no answer, though the write was done")

    def _before_read(self, call: Call) -> None:
        if not self._off and self._blind[call.what] > 0:
            self._blind[call.what] -= 1
            self.struck = True
            self.ends_pass = call.what in _NEEDED
            raise Unreachable(f"{call.what}: no answer")


def _again(error: ClusterError) -> ClusterError:
    """Return an error like this one: one that was raised keeps its traceback."""
    return type(error)(str(error), status=error.status, retry_after=error.retry_after)


@move("fault", 14, values=_WRITES, on_node=False)
def fault(play: Play, _: str, value: str) -> None:
    """Let a write fail, or the process end at it."""
    kind, _, number = value.rpartition(" at ")
    play.faults.arm(kind, int(number))


@move("fault", 4, values=_READS, on_node=False)
def blind(play: Play, _: str, value: str) -> None:
    """Let a read fail once, in the next pass or drain."""
    play.faults.blind(value)
    play.wake()


@move("fault", 4, on_node=False)
def stale(play: Play, _: str, __: str) -> None:
    """Let the next pass see the nodes as they were before the last step."""
    play.world.api.stale = play.before or None
    play.wake()


@move("fault", 4, values=("0", "1"), on_node=False)
def old_leader(play: Play, _: str, value: str) -> None:
    """Let a process whose lock is lost do one more pass, with what it read before the last step."""
    play.world.api.stale = play.before or None
    play.faults.lose_lock(int(value))
    play.wake()


@move("fault", 2, on_node=False)
def restart(play: Play, _: str, __: str) -> None:
    """End the process between two passes."""
    play.world.restart()
    play.wake()


_LAGS = {
    "kept": ((timedelta(),),),
    "lost": ((),),
    "late": ((timedelta(seconds=10),), (timedelta(seconds=60),)),
    "doubled": ((timedelta(), timedelta(seconds=10)),),
    "mixed": ((timedelta(),), (), (timedelta(), timedelta(seconds=10)), (timedelta(seconds=60),)),
}


@move("fault", 4, values=tuple(_LAGS), on_node=False)
def watches(play: Play, _: str, value: str) -> None:
    """Lose, double or delay what watches report from now on."""
    lags = _LAGS[value]
    play.cluster.delivery = lambda item: play.random.choice(lags)


@move("fault", 2, on_node=False)
def watches_end(play: Play, _: str, __: str) -> None:
    """End every open watch."""
    play.cluster.break_watches(Unreachable("the watch ended"))
