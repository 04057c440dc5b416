"""Histories in which the exploration has to find that a rule was removed, and how they are played."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from reconciler.model.instructions import Instructions
from reconciler.model.moments import shifted
from tests.explore.exploring import broken_law
from tests.explore.history import History, Scene, Step

ACTING = ("mode: Enforce", "budget: {maxUnavailable: 1}")
Removed = tuple[str, History, dict[str, Any]]
"""The law that a history breaks once these places of the program are replaced."""

DAY = timedelta(days=1)
REBOOT = Step("request", value="Reboot", then=5)
LONG = dataclasses.replace(REBOOT, then=60)
ASKS = Step("pod waits", value="wait-completed")
SAYS_NOTHING: dict[str, Any] = {
    f"reconciler.{module}.instructions_of": lambda *_: Instructions()
    for module in ("passes.decide.known", "profiles.situation")
}
WAITS_A_DAY: dict[str, Any] = {
    "reconciler.model.drains.WaitLimit.ends": lambda limit, _: shifted(limit.since, DAY)
}


def played(
    *steps: Step, pods: tuple[str, ...] = (), settings: tuple[str, ...] = (), nodes: int = 1
) -> History:
    """Return a history of a reconciler that acts, on these nodes."""
    return History(Scene(nodes, settings=(*ACTING, *settings), pods=pods), steps)


def finds(monkeypatch: pytest.MonkeyPatch, law: str, history: History, removed: dict[str, Any]) -> None:
    """Check that a history breaks no law, and this one once the places are replaced."""
    assert broken_law(history) == ""
    for place, replaced in removed.items():
        monkeypatch.setattr(place, replaced)

    assert broken_law(history) == law
