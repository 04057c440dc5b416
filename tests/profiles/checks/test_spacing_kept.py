"""spacingKept, by the last start."""

from __future__ import annotations

import pytest

from reconciler.model.event import Kind
from reconciler.model.plan import Verdict
from reconciler.model.snapshot import Ledger
from tests.support import builders
from tests.support.builders import NOW, ask, event, judged, minutes, situation


@pytest.mark.parametrize(
    ("spacing", "ago", "kind", "verdict"),
    [
        pytest.param(10, None, Kind.REBOOT, Verdict.PASSED, id="nothing was ever started"),
        pytest.param(10, 9, Kind.REBOOT, Verdict.FAILED, id="too soon"),
        pytest.param(10, 10, Kind.REBOOT, Verdict.PASSED, id="long enough"),
        pytest.param(0, 0, Kind.REBOOT, Verdict.PASSED, id="no spacing is set"),
        pytest.param(10, 1, Kind.PREEMPT, Verdict.PASSED, id="lost anyway"),
    ],
)
def test_starts_are_spaced(spacing: int, ago: int | None, kind: Kind, verdict: Verdict) -> None:
    chosen = builders.settings(f"budget: {{spacing: {spacing}m}}")
    ledger = Ledger(None if ago is None else NOW - minutes(ago))
    answer = ask("spacingKept", situation(None, judged(event(kind)), chosen=chosen, ledger=ledger))

    assert answer.verdict is verdict
    assert answer.until == (NOW + minutes(1) if verdict is Verdict.FAILED else None)
