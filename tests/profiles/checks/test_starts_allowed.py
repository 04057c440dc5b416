"""startsAllowed, by the mode."""

from __future__ import annotations

import pytest

from reconciler.model.plan import Verdict
from tests.support import builders
from tests.support.builders import ask, situation


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [("Observe", Verdict.PASSED), ("Enforce", Verdict.PASSED), ("Finish", Verdict.FAILED)],
)
def test_only_finish_starts_nothing_new(mode: str, verdict: Verdict) -> None:
    assert ask("startsAllowed", situation(chosen=builders.settings(mode=mode))).verdict is verdict
