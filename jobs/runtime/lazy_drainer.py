"""A drainer that is made when the first drain begins: most passes have none, and are short."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from reconciler.model.drains import DrainOrder, DrainProgress

if TYPE_CHECKING:
    from reconciler.drainer import Drainer


class DrainerWhenNeeded:
    """Stands for the drainer that `make` gives, and spares a pass without drains its import and threads."""

    def __init__(self, make: Callable[[], Drainer]) -> None:
        """Take what makes the drainer."""
        self._make = make
        self._made: Drainer | None = None

    def start(self, order: DrainOrder) -> None:
        """Start a node's drain, or go on with it."""
        if self._made is None:
            self._made = self._make()
        self._made.start(order)

    def stop(self, node: str) -> None:
        """Evict nothing more from a node."""
        if self._made is not None:
            self._made.stop(node)

    def progress(self) -> Mapping[str, DrainProgress]:
        """Tell how far each drain is that was ever begun here."""
        return self._made.progress() if self._made is not None else {}

    def wait(self, timeout: float | None) -> bool:
        """Wait until a drain ends or none runs; tells whether that came about."""
        return self._made is None or self._made.wait(timeout)

    def close(self) -> None:
        """Stop everything and return when no request is under way any more."""
        if self._made is not None:
            self._made.close()
