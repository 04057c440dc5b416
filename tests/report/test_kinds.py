"""Which kinds of holds and actions there are: features bring their own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconciler import plugins
from reconciler.model.holds import HoldKind
from reconciler.model.outcome import ActionKind
from reconciler.passes.plugin import Feature
from reconciler.report.kinds import action_kinds, hold_kinds


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (HoldKind("drainSlot", "x"), "toys/crane.py: reconciler/model/holds.py has another hold drainSlot"),
        (
            HoldKind("notHeld", "x"),
            "toys/crane.py: reconciler/profiles/checks/people.py has another hold notHeld",
        ),
        (HoldKind("lifted", ""), "toys/crane.py: the hold lifted does not say who can end it"),
    ],
)
def test_a_hold_that_exists_or_that_nobody_can_end_is_refused_with_its_file(
    kind: HoldKind, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crane = SimpleNamespace(__name__="toys.crane", FEATURE=Feature("crane", (kind,)))
    monkeypatch.setattr(plugins, "modules", lambda stage: iter([crane] if stage == "feature" else []))

    with pytest.raises(ValueError, match=said):
        hold_kinds.__wrapped__()


def test_the_hold_of_a_feature_is_one_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    lifted = HoldKind("lifted", "whoever runs the crane")
    crane = SimpleNamespace(__name__="toys.crane", FEATURE=Feature("crane", (lifted,)))
    monkeypatch.setattr(plugins, "modules", lambda stage: iter([crane] if stage == "feature" else []))

    assert hold_kinds.__wrapped__()["lifted"] is lifted


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (ActionKind("cordon", "lift"), "toys/crane.py: reconciler/model has another action cordon"),
        (ActionKind("lift", ""), "toys/crane.py: the action lift has no words for reports"),
    ],
)
def test_an_action_that_exists_or_that_has_no_words_is_refused_with_its_file(
    kind: ActionKind, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crane = SimpleNamespace(__name__="toys.crane", FEATURE=Feature("crane", actions=(kind,)))
    monkeypatch.setattr(plugins, "modules", lambda stage: iter([crane] if stage == "feature" else []))

    with pytest.raises(ValueError, match=said):
        action_kinds.__wrapped__()
