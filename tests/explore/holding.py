"""A history that once broke a law, as a test plays it."""

from __future__ import annotations

from tests.explore.exploring import play
from tests.explore.history import History, Scene, Step


def holds(scene: Scene, steps: tuple[Step, ...], *, seed: int = 0) -> None:
    """Play a history; it has to break no law."""
    found = play(History(scene, steps, seed))
    assert found.broken == []
