"""The system's clock, for all code that must not read a clock itself."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Condition


class SystemClock:
    """The machine's time; implements `reconciler.model.ports.Clock`."""

    def now(self) -> datetime:
        """The time, aware, UTC."""
        return datetime.now(UTC)

    def wait(self, condition: Condition, timeout: float | None) -> None:
        """Wait on a condition that the caller holds until it is notified, or so many seconds at most."""
        condition.wait(timeout)
