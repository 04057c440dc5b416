"""What a process traces of its passes and drains. Here it is nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from reconciler.model.drains import DrainOrder, DrainProgress
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.ports import Evictor

Seen = Callable[[Plan, Sequence[Outcome]], None]
"""Gets what a pass has decided and done."""


class Tracing:
    """Traces nothing. Its methods may be called from any thread, and raise nothing of their own."""

    active = False
    """Whether anything is traced."""

    def __enter__(self) -> Tracing:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Send what is left, for a short time at most."""

    @contextmanager
    def passing(self) -> Iterator[Seen]:
        """Trace a pass, and the requests that its thread sends in it."""
        yield _unseen

    def ordered(self, order: DrainOrder) -> None:
        """Trace a drain from now on. The same order again changes nothing."""

    def progressed(self, progress: DrainProgress) -> None:
        """End the trace of a drain that has ended."""

    def stopped(self) -> None:
        """End the traces of all drains: this process drains no more."""

    def evictor(self, evictor: Evictor) -> Evictor:
        """Return what does the same, and traces the requests for a node as parts of its drain."""
        return evictor


NOTHING = Tracing()


def _unseen(plan: Plan, outcomes: Sequence[Outcome]) -> None:
    pass
