"""The exploration finds that workflows act for one another, on a held node, or without an end."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from reconciler.features.workflows import triggers
from reconciler.features.workflows.situation import Worked, WorkflowSituation
from reconciler.model.values import replace
from reconciler.profiles.state_machine import first_open
from tests.explore.choices import PLAIN
from tests.explore.history import History, Step
from tests.explore.removed import ASKS, SAYS_NOTHING, WAITS_A_DAY, Removed, finds, played

undone = triggers.uncordoned
ONE, TWO = (Step("work", value=name, then=5) for name in ("one", "two"))


def _whatever_others_do(verdicts: Any, _: Any, **more: Any) -> Any:
    return first_open(verdicts, lambda step: False, **more)


def _opens(situation: WorkflowSituation, before: Worked) -> Worked:
    work = undone(situation, before)
    return replace(work, node=replace(work.node, unschedulable=False))


FOUND: dict[str, Removed] = {
    "a pod that holds the drain of a workflow for ever": (
        "17",
        played(
            ASKS,
            dataclasses.replace(TWO, then=60),
            pods=("tenant",),
            settings=(PLAIN, "drain: {podsMayWait: 15m}"),
        ),
        WAITS_A_DAY,
    ),
    "a node in maintenance for two profiles": (
        "19",
        played(Step("work", value="one"), TWO, Step("work done", value="one", then=5), settings=(PLAIN,)),
        {"reconciler.features.workflows.run.first_open": _whatever_others_do},
    ),
    "a node that one profile opens for all": (
        "19",
        # The other node takes the only place of `few`, so this one waits cordoned.
        played(
            dataclasses.replace(ONE, on=1),
            ONE,
            TWO,
            Step("work done", value="two", then=5),
            nodes=2,
            settings=(PLAIN,),
        ),
        {"reconciler.features.workflows.triggers.uncordoned": _opens},
    ),
    "a workflow that begins on a held node": (
        "people",
        played(Step("hold"), TWO, settings=(PLAIN,)),
        SAYS_NOTHING,
    ),
}


@pytest.mark.parametrize(("law", "history", "removed"), FOUND.values(), ids=FOUND)
def test_the_exploration_finds_the_rule_that_is_removed(
    monkeypatch: pytest.MonkeyPatch, law: str, history: History, removed: dict[str, Any]
) -> None:
    finds(monkeypatch, law, history, removed)
