"""Creates the drainer lazily: most passes drain nothing, and skip its import and its threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from reconciler.model.drains import DrainOrder, DrainProgress

if TYPE_CHECKING:
    from reconciler.drain.drainer import Drainer


class DrainerWhenNeeded:
    """The drainer that `make` returns, created when the first drain starts."""

    def __init__(
        self, make: Callable[[], Drainer], on_order: Callable[[DrainOrder], None] | None = None
    ) -> None:
        """Use this function to create the drainer; `on_order` gets each order."""
        self._make, self._on_order = make, on_order
        self._made: Drainer | None = None

    def start(self, order: DrainOrder) -> None:
        """Start a node's drain, or continue it."""
        if self._made is None:
            self._made = self._make()
        if self._on_order is not None:
            self._on_order(order)
        self._made.start(order)

    def stop(self, node: str) -> None:
        """Stop evictions from a node."""
        if self._made is not None:
            self._made.stop(node)

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return the progress of each drain that was ever started here."""
        return self._made.progress() if self._made is not None else {}

    def wait(self, timeout: float | None) -> bool:
        """Wait up to `timeout` seconds until a drain ends or none runs; return whether that happened."""
        return self._made is None or self._made.wait(timeout)

    def close(self) -> None:
        """Stop all drains, and return when no request is in flight."""
        if self._made is not None:
            self._made.close()
