"""Cases that have ended, with good defaults."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import CasePlace, CaseTimes, EndedCase, to_fields
from tests.support.builders import NOW, minutes


def ended(
    name: str = "a",
    *,
    at: datetime = NOW,
    pool: str = "np",
    kind: str = "Reboot",
    outcome: CaseResult = CaseResult.DRAINED,
    **times: Any,
) -> EndedCase:
    """A case of an hour that ended at this moment: announced 20 minutes ahead, and drained in two."""
    start = at - minutes(60)
    moments: dict[str, Any] = {
        "announced": start,
        "not_before": start + minutes(20),
        "started": start + minutes(5),
        "drained": start + minutes(7),
        "gone": at - minutes(3),
        "uncordoned": at,
        **times,
    }
    return EndedCase(
        CasePlace(name, f"uid-{name}", "1", pool),
        CaseTimes(start, at, **moments),
        kind,
        ("imds",),
        outcome,
        f"{outcome.value}: as told",
        12,
        1,
    )


def line(case: EndedCase, **changed: Any) -> str:
    """The line of a case as a log has it, with these fields instead of its own."""
    return json.dumps({"at": "2026-11-21T12:00:00Z", "event": "case", **to_fields(case), **changed})
