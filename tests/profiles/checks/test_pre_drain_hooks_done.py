"""preDrainHooksDone, by the annotations of the node, the record and the latest start of the event."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.model.hooks import HookEnd, HookId, HookRecord, HookStep
from reconciler.model.plan import JudgedEvent, Verdict
from reconciler.model.structs import replace
from reconciler.profiles.case import CaseView
from tests.support import builders
from tests.support.builders import NOW, PREFIX, ask, minutes, node, situation

BACKUP = HookId(HookStep.PRE_DRAIN, "backup")


@pytest.mark.parametrize(
    ("hook", "latest", "verdict", "until"),
    [
        pytest.param(None, None, Verdict.FAILED, None, id="not begun"),
        pytest.param(HookRecord(BACKUP, NOW), None, Verdict.FAILED, NOW + minutes(10), id="begun"),
        pytest.param(HookRecord(BACKUP, NOW - minutes(10)), None, Verdict.PASSED, None, id="out of time"),
        pytest.param(HookRecord(BACKUP, NOW, HookEnd.TIMED_OUT), None, Verdict.PASSED, None, id="ended"),
        pytest.param(
            HookRecord(BACKUP, NOW), NOW + minutes(4), Verdict.FAILED, NOW + minutes(4), id="latest start"
        ),
        pytest.param(HookRecord(BACKUP, NOW), NOW, Verdict.PASSED, None, id="no time left"),
    ],
)
def test_a_hook_holds_the_drain_until_its_time_is_over(
    hook: HookRecord | None, latest: datetime | None, verdict: Verdict, until: datetime | None
) -> None:
    held = replace(builders.record(), hooks=(hook,) if hook is not None else ())
    present: tuple[JudgedEvent, ...] = ()
    if latest is not None:
        # The lead time of a reboot is 15 minutes.
        present = (builders.judged(builders.event(not_before=latest + minutes(15))),)
    one = node(annotations={f"{PREFIX}/pre-drain.backup": ""})
    answer = ask("preDrainHooksDone", situation(one, held=held, case=CaseView(present)))

    assert (answer.verdict, answer.until) == (verdict, until)


def test_very_many_hooks_are_counted_after_the_third() -> None:
    marks = {f"{PREFIX}/pre-drain.h{number:03}": "me" for number in range(1000)}
    answer = ask("preDrainHooksDone", situation(node(annotations=marks), held=builders.record()))

    assert answer.reason == (
        "hooks pre-drain.h000 (me), pre-drain.h001 (me), pre-drain.h002 (me) and 17 more hold the drain "
        "until their owners remove the annotations, for 10m at most"
    )


@pytest.mark.parametrize(
    "key",
    ["pre-drain", "pre-drain.", "pre-drain. ", "pre-drain.a/b", f"pre-drain.{'x' * 64}", "pre-drain.\x1b"],
)
def test_an_annotation_that_the_api_server_does_not_accept_is_no_hook(key: str) -> None:
    one = node(annotations={f"{PREFIX}/{key}": "me", "other.example/pre-drain.backup": "me"})

    assert ask("preDrainHooksDone", situation(one, held=builders.record())).verdict is Verdict.PASSED
