"""Notices when a drain is blocked, so that the next node gets its slot without waiting for the schedule."""

from __future__ import annotations

from reconciler.model.drains import DrainProgress, Phase


class Yields:
    """What was seen of the drains so far. A drain that is blocked tries again and again; it counts once."""

    def __init__(self) -> None:
        """Start with no drain seen."""
        self._yielded: set[str] = set()

    def see(self, progress: DrainProgress) -> bool:
        """Return whether the drain gives a slot away for the first time since it last made progress."""
        node = progress.node
        if progress.phase is not Phase.RUNNING or progress.blocked_since is None:
            self._yielded.discard(node)
            return False
        if progress.slot or progress.waits_for_slot or node in self._yielded:
            return False
        self._yielded.add(node)
        return True
