"""The exploration finds that a drain waits for no approval."""

from __future__ import annotations

from typing import Any

import pytest

from tests.explore.history import History
from tests.explore.removed import REBOOT, Removed, finds, played

FOUND: dict[str, Removed] = {
    "a drain that nobody has approved": (
        "people",
        played(REBOOT, settings=("events: {Reboot: {approval: true}}",)),
        {"reconciler.features.approvals.steps.Wait": lambda *_: None},
    )
}


@pytest.mark.parametrize(("law", "history", "removed"), FOUND.values(), ids=FOUND)
def test_the_exploration_finds_the_rule_that_is_removed(
    monkeypatch: pytest.MonkeyPatch, law: str, history: History, removed: dict[str, Any]
) -> None:
    finds(monkeypatch, law, history, removed)
