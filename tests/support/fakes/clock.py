"""The system's clock behind the Clock port, for tests that use threads."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Condition


class SystemClock:
    """Time as the machine has it."""

    def now(self) -> datetime:
        """See the port."""
        return datetime.now(UTC)

    def wait(self, condition: Condition, timeout: float | None) -> None:
        """See the port."""
        condition.wait(timeout)
