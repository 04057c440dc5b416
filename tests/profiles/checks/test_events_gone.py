"""eventsGone, by the case and the settle time."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.event import Status
from reconciler.model.plan import Verdict
from reconciler.profiles.case import CaseView
from tests.support import builders
from tests.support.builders import NOW, ask, event, judged, minutes, situation

STARTED = judged(event(status=Status.STARTED))


@pytest.mark.parametrize(
    ("case", "quiet", "verdict", "reason", "until"),
    [
        pytest.param(
            CaseView((STARTED,)),
            None,
            Verdict.FAILED,
            "waits for the end of Reboot (Started)",
            None,
            id="Started is there",
        ),
        pytest.param(CaseView((), ("no word",)), None, Verdict.UNKNOWN, "no word", None, id="nobody can say"),
        pytest.param(
            CaseView(),
            NOW - minutes(1),
            Verdict.FAILED,
            "settles until",
            NOW + minutes(1),
            id="settles until",
        ),
        pytest.param(
            CaseView(), NOW - minutes(2), Verdict.PASSED, "have been gone since", None, id="it has settled"
        ),
        pytest.param(CaseView(), None, Verdict.FAILED, "settles until", NOW + minutes(2), id="gone just now"),
    ],
)
def test_gone_means_gone_from_everybody_for_the_settle_time(
    case: CaseView, quiet: datetime | None, verdict: Verdict, reason: str, until: datetime | None
) -> None:
    answer = ask("eventsGone", situation(held=builders.record(quiet_since=quiet), case=case))

    assert (answer.verdict, answer.until) == (verdict, until)
    assert reason in answer.reason
