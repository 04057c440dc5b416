"""What the checks say by which hooks hold the steps of a case."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import pytest

from reconciler.features.hooks.hook import IN_RECORD, HookEnd, HookId, HookRecord
from reconciler.model.keys import OwnKeys
from reconciler.model.record import DrainRecord
from reconciler.model.steps import HeldStep
from reconciler.model.values import replace
from reconciler.passes.observe import wanted
from reconciler.passes.parts import Parts, Sources
from reconciler.profiles.case import CaseView
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, failed, passed
from reconciler.report.explain import who_ends
from tests.support.builders import NOW, PREFIX, ask, event, judged, minutes, node, read_of, record, situation

ANSWERS: dict[str, Mapping[str, tuple[Situation, CheckResult]]] = {}
"""By check and case: the situation, and the answer with words that are in its reason."""


def at(later: float) -> datetime:
    """So many minutes from now."""
    return NOW + minutes(later)


def hooked(
    step: str, *begun: HookRecord, date: float | None = None, drain: DrainRecord | None = None
) -> Situation:
    """A node in maintenance with a hook `h` of this step, whose event has a date so many minutes from now."""
    reported = judged(event(not_before=None if date is None else at(date)))
    remembered = IN_RECORD.put(record(drain=drain), begun)
    return situation(
        node(annotations={f"{PREFIX}/{step}.h": ""}), held=remembered, case=CaseView((reported,))
    )


def begun(step: HeldStep, ago: float = 0, end: HookEnd | None = None) -> HookRecord:
    """The hook `h`, begun so many minutes ago."""
    return HookRecord(HookId(step, "h"), at(-ago), end)


PRE, POST = begun(HeldStep.PRE_DRAIN), begun(HeldStep.POST_DRAIN)
JUST_DRAINED = DrainRecord(NOW, done=NOW)
MANY = node(annotations={f"{PREFIX}/pre-drain.h{number:03}": "me" for number in range(1000)})

# The lead time of a reboot is 15 minutes.
ANSWERS["preDrainHooksDone"] = {
    "not begun": (hooked("pre-drain"), failed("")),
    "begun": (hooked("pre-drain", PRE), failed("", at(10))),
    "out of time": (hooked("pre-drain", begun(HeldStep.PRE_DRAIN, 10)), passed()),
    "ended": (hooked("pre-drain", begun(HeldStep.PRE_DRAIN, end=HookEnd.TIMED_OUT)), passed()),
    "latest start": (hooked("pre-drain", PRE, date=19), failed("", at(4))),
    "no time left": (hooked("pre-drain", PRE, date=15), passed()),
    "very many": (
        situation(MANY, held=record()),
        failed(
            "hooks pre-drain.h000 (me), pre-drain.h001 (me), pre-drain.h002 (me) and 17 more hold the drain "
            "until their owners remove the annotations, for 10m at most"
        ),
    ),
}
ANSWERS["postDrainHooksDone"] = {
    "a hook after": (hooked("pre-uncordon", drain=JUST_DRAINED), passed()),
    "not begun": (hooked("post-drain", drain=JUST_DRAINED), failed("")),
    "the date comes first": (hooked("post-drain", POST, date=4), failed("", at(4))),
    "the time limit comes first": (hooked("post-drain", POST, date=30), failed("", at(10))),
    "the date was over when it began": (hooked("post-drain", POST, date=-1), failed("", at(10))),
}
ANSWERS["preUncordonHooksDone"] = {
    "its time limit, whatever the event says": (
        hooked("pre-uncordon", begun(HeldStep.PRE_UNCORDON), date=-1),
        failed("", at(10)),
    )
}


@pytest.mark.parametrize(
    ("check", "seen", "expected"),
    [
        pytest.param(check, *row, id=f"{check}: {case}")
        for check, rows in ANSWERS.items()
        for case, row in rows.items()
    ],
)
def test_answers(check: str, seen: Situation, expected: CheckResult) -> None:
    answer = ask(check, seen)

    read = read_of(seen.node, wanted(seen.settings, Parts(Sources())))
    assert ask(check, replace(seen, node=read)) == answer, f"no pass reads all that {check} reads"
    assert expected.reason in answer.reason
    assert (answer.verdict, answer.until, answer.holds) == (expected.verdict, expected.until, expected.holds)


@pytest.mark.parametrize(
    ("hooks", "said"), [({}, ""), ({f"{PREFIX}/pre-drain.h": ""}, "can't be read: hooks:")]
)
def test_hooks_in_a_record_that_cannot_be_read_hold_their_step(hooks: dict[str, str], said: str) -> None:
    unreadable = replace(record(), parts={"hooks": [{"hook": "later.h"}]})
    answer = ask("preDrainHooksDone", situation(node(annotations=hooks), held=unreadable))

    assert (answer.verdict is passed().verdict) is (not said)
    assert said in answer.reason


def test_the_command_that_ends_a_hook_has_the_prefix_of_the_settings() -> None:
    said = who_ends("preDrainHooksDone", "a", OwnKeys("ours.example.com"))

    assert "a hook in an annotation can be removed: `kubectl annotate node a ours.example" in said
