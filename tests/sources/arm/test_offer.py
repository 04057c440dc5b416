"""When Azure is asked to do its planned maintenance now, and what becomes of the request."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime

import pytest

from reconciler.model.machine import vm_of
from reconciler.model.plan import JudgedEvent, Verdict
from reconciler.model.record import Asked, DrainRecord
from reconciler.model.values import replace
from reconciler.profiles.case import CaseView
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, failed, passed
from reconciler.settings.schema import Settings
from reconciler.sources.arm.source import SELF_SERVICE, PerformMaintenance
from tests.support.builders import NOW, event, judged, minutes, situation
from tests.support.cases import (
    ASKED_FOR,
    OFFER,
    PROVIDER_ID,
    TAKEN,
    azure_node,
    drained,
    judged_plan,
    self_service,
)


def at(later: float) -> datetime:
    """So many minutes from now."""
    return NOW + minutes(later)


def no(reason: str, until: datetime | None = None) -> CheckResult:
    """An answer that holds no node."""
    return failed(reason, until, holds=False)


def azure(
    asked: Asked | None = None,
    boot: str = "boot-1",
    *beside: JudgedEvent,
    plan: JudgedEvent | None = None,
    chosen: Settings = TAKEN,
) -> Situation:
    """A node that was drained for a plan of Azure's, by default one that is offered now."""
    return situation(azure_node(boot), plan or judged_plan(), *beside, chosen=chosen, held=drained(asked))


def performed(ago: float, attempts: int = 1) -> Asked:
    """Azure was asked for the maintenance so many minutes ago."""
    return self_service(at(-ago), attempts)


REBOOT = judged(event())
SILENT = CaseView((), ("imds is silent",))
AT_HAND = replace(judged_plan(plan=None), asks=True, starts=True)
# By default nothing is started, though the offer is open and asks.
NOT_TAKEN = judged_plan(ASKED_FOR, not_before=at(60))
UNUSED = no("the settings do not use the offer")

DUE = {
    "not asked yet": (azure(), passed("the node is drained")),
    "asked in vain ten minutes ago": (azure(performed(10)), passed()),
    "asked just now": (azure(performed(9)), no("Azure was asked at", at(1))),
    "enough": (azure(performed(600, 3)), no("asked 3 times")),
    "booted: it is being done": (azure(performed(10), "boot-2"), no("has booted since")),
    "a boot that is not reported proves nothing": (azure(performed(10), ""), passed()),
    "not allowed now": (azure(plan=judged_plan(plan=dataclasses.replace(OFFER, offered=False))), UNUSED),
    "the self-service window is over": (
        azure(plan=judged_plan(plan=dataclasses.replace(OFFER, offer_end=NOW))),
        UNUSED,
    ),
    "no plan any more": (azure(plan=judged_plan(plan=None)), UNUSED),
    "not taken by default": (azure(plan=NOT_TAKEN, chosen=ASKED_FOR), UNUSED),
    "another event is at hand": (azure(None, "boot-1", AT_HAND), no("there is another event")),
    "not drained": (replace(azure(), record=replace(drained(), drain=DrainRecord(NOW))), no("not drained")),
    "not Azure's": (replace(azure(), node=replace(azure_node(), provider_id="kind://a")), no("not Azure's")),
    "two nodes have the VM": (replace(azure(), twin="b"), failed("node b has the same providerID")),
}

ANSWERED = {
    "nobody asked": (azure(), passed()),
    "no boot yet": (azure(performed(5)), failed("has not booted", at(55))),
    "no boot reported": (azure(performed(5), ""), failed("has not booted", at(55))),
    "booted": (azure(performed(5), "boot-2"), passed("has booted since")),
    "but the node did not boot": (azure(performed(60)), passed("did not boot")),
}

REFUSED = {
    "asked three times": (azure(performed(60, 3)), passed("1h after attempt 3")),
    "still waited for": (azure(performed(59, 3)), failed("", at(1))),
    "one try is left": (azure(performed(60, 2)), failed("attempts left")),
    "booted, and Azure still plans it": (azure(performed(60), "boot-2"), passed()),
    "the plan has gone": (replace(azure(performed(60, 3)), case=CaseView()), failed("")),
    "there is a current event": (azure(performed(60, 3), "boot-1", REBOOT), failed("current event")),
    "nobody can say": (replace(azure(performed(60, 3)), case=SILENT), failed("")),
}

assert SELF_SERVICE.refused is not None


@pytest.mark.parametrize(
    ("question", "seen", "expected"),
    [
        pytest.param(question, *row, id=f"{name}: {case}")
        for name, question, rows in (
            ("due", SELF_SERVICE.due, DUE),
            ("answered", SELF_SERVICE.answered, ANSWERED),
            ("refused", SELF_SERVICE.refused, REFUSED),
        )
        for case, row in rows.items()
    ],
)
def test_answers(
    question: Callable[[Situation], CheckResult], seen: Situation, expected: CheckResult
) -> None:
    answer = question(seen)

    assert expected.reason in answer.reason
    assert (answer.verdict, answer.until) == (expected.verdict, expected.until)
    assert answer.holds == expected.holds or answer.verdict is Verdict.PASSED


def test_each_attempt_asks_for_the_vm_of_the_node() -> None:
    first, second = SELF_SERVICE.request(azure()), SELF_SERVICE.request(azure(performed(10), "boot-2"))
    vm = vm_of(PROVIDER_ID)

    assert first is not None
    assert second is not None
    assert vm is not None
    assert first.task == second.task == PerformMaintenance("a", vm)
    assert first.own == second.own == "boot-1"
    assert first.notice.message == "asks Azure to do its maintenance now"
    assert second.notice.message.endswith("(attempt 2)")


def test_of_a_vm_that_is_not_known_nothing_is_asked() -> None:
    assert SELF_SERVICE.request(replace(azure(), node=replace(azure_node(), provider_id=""))) is None
