"""The exploration finds that hooks have no end, or hold nothing."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from reconciler.model.moments import shifted
from reconciler.passes.node_facts import DrainWait
from tests.explore.history import History, Step
from tests.explore.removed import DAY, REBOOT, Removed, finds, played

HOOK = Step("hook", value="pre-drain.leader")
FOUND: dict[str, Removed] = {
    "a hook without an end": (
        "17",
        played(HOOK, dataclasses.replace(REBOOT, then=30)),
        {"reconciler.features.hooks.holding.ends_at": lambda entry, _: shifted(entry.since, DAY)},
    ),
    "an eviction while a hook holds the drain": (
        "hooks",
        played(HOOK, REBOOT),
        {"reconciler.features.hooks.feature.DrainWait": lambda *_: DrainWait()},
    ),
}


@pytest.mark.parametrize(("law", "history", "removed"), FOUND.values(), ids=FOUND)
def test_the_exploration_finds_the_rule_that_is_removed(
    monkeypatch: pytest.MonkeyPatch, law: str, history: History, removed: dict[str, Any]
) -> None:
    finds(monkeypatch, law, history, removed)
