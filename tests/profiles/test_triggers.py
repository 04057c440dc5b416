"""What each trigger does, in one table: tests/profiles/test_plugins.py demands a row of each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec import Struct

from reconciler.model.event import Kind, MaintenanceEvent
from reconciler.model.machine import Remove, ScaleUp
from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.model.plan import Notice, Verdict
from reconciler.model.record import Asked, CaseRecord, Cordon, DrainRecord, State, Uncordoned
from reconciler.model.values import replace
from reconciler.profiles.case import CaseView
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.situation import Offer, Request, Situation, Work
from reconciler.profiles.triggers import TRIGGERS
from reconciler.profiles.vocabulary import CheckResult, failed, passed
from reconciler.settings.schema import Settings
from tests.support.builders import NOW, event, judged, known, minutes, node, record, settings, situation
from tests.support.cases import machine


class After(Struct, frozen=True):
    """What a trigger leaves: the record, what it asks for, and what changes on the node."""

    record: CaseRecord
    task: ScaleUp | Remove | None = None
    node: Mapping[str, Any] = {}


EFFECTS: dict[str, Mapping[str, tuple[Situation, After, str]]] = {}
"""By trigger and case: the situation, what the trigger leaves, and words of the only notice, if any."""

EFFECTS["adopt"] = {
    "it starts no drain, because every start asks its own checks": (
        situation(node(labels={MECHANIC_LABEL: "true", "zone": "1"}), judged(event())),
        After(CaseRecord(cordon=Cordon.ADOPTED_MECHANIC), node={"labels": {"zone": "1"}}),
        "MaintenanceAdopted: adopted the cordon of mechanic",
    )
}


def asked(chosen: Settings, reported: MaintenanceEvent, *others: Node) -> Situation:
    """An open node with this event, in a cluster with other nodes."""
    return situation(node(), judged(reported, chosen), chosen=chosen, fleet=(node(), *others))


CORDONED = After(CaseRecord(cordon=Cordon.OURS), node={"unschedulable": True})
LUNCH = settings('budget: {maxUnavailable: 3}\nwindows: [{name: lunch, start: "11:00", end: "13:00"}]')
SALE = settings("notAllowed: [{name: sale, start: 2026-11-21, end: 2026-11-21T18:00}]")
ONE = settings("budget: {maxUnavailable: 1}")
OUT = node("b", unschedulable=True)
EFFECTS["cordon"] = {
    "the open window and its end": (
        asked(LUNCH, event()),
        CORDONED,
        "MaintenanceCordon: cordoned: Reboot requires a drain; window lunch is open until 2026-11-21T13:00",
    ),
    "the place in the budget": (
        asked(LUNCH, event(), OUT, node("c"), node("d")),
        CORDONED,
        "; budget: 2 of 3 places taken",
    ),
    "the deadline and the freeze that it overruled": (
        asked(SALE, event(not_before=NOW + minutes(10))),
        CORDONED,
        "the deadline 2026-11-21T11:55:00Z passed 5m ago, which overrules: not allowed: sale",
    ),
    "an exempt kind takes more than the budget": (
        asked(ONE, event(Kind.PREEMPT), OUT),
        CORDONED,
        "budget: 2 of 1 place taken (exempt)",
    ),
    "an existing cordon is foreign": (
        situation(node(unschedulable=True)),
        After(CaseRecord(cordon=Cordon.FOREIGN)),
        "",
    ),
}

OPENED = {"unschedulable": False}
CLOSED_CASE = CaseRecord(State.IN_MAINTENANCE, record().since)
HELD = record(events=(known(ids=("A1",)),))
EFFECTS["dismiss"] = {
    "its events are ignored": (
        situation(held=HELD, case=CaseView((judged(event()),))),
        After(
            replace(
                CLOSED_CASE,
                events=HELD.events,
                dismissed=HELD.events,
                uncordoned=Uncordoned(NOW, drained=HELD.drain.done if HELD.drain is not None else None),
            )
        ),
        "Warning MaintenanceStopped: someone uncordoned the node",
    ),
    "events that have gone need not be remembered": (
        situation(held=HELD, case=CaseView()),
        After(CLOSED_CASE),
        "Warning MaintenanceStopped",
    ),
}


ANNOUNCED = record(events=(known(Kind.REBOOT, ids=("A1", "B2")),))
ASKED_TWICE = replace(ANNOUNCED, asked=(Asked("toy", NOW - minutes(10), 2, ("A1",), "boot-1"),))


def toy(request: Request | None, *, due: bool = True) -> Offer:
    """An offer that asks for this if it is due, and ends a case that it ends in vain."""
    answer = passed() if due else failed("not now")
    return Offer("toy", "the toy", lambda _: answer, lambda _: request, refused=lambda _: passed())


TASK = ScaleUp("a", machine(), 4)
EFFECTS["askPlatform"] = {
    "the request is recorded before it is sent": (
        replace(
            situation(held=ANNOUNCED),
            offers=(toy(Request(Notice("Asked", "may it begin"), TASK, ("A1",), "boot-1")),),
        ),
        After(replace(ANNOUNCED, asked=(Asked("toy", NOW, 1, ("A1",), "boot-1"),)), task=TASK),
        "Asked: may it begin",
    ),
    "another attempt is counted, with the events of all": (
        replace(
            situation(held=ASKED_TWICE),
            offers=(toy(Request(Notice("Asked", "again"), events=("B2",), own="boot-1")),),
        ),
        After(replace(ANNOUNCED, asked=(Asked("toy", NOW, 3, ("A1", "B2"), "boot-1"),))),
        "again",
    ),
    "what is not due is not asked": (
        replace(situation(held=record()), offers=(toy(Request(Notice("Asked", "no")), due=False),)),
        After(record()),
        "",
    ),
    "what can't be asked is left": (
        replace(situation(held=record()), offers=(toy(None),)),
        After(record()),
        "",
    ),
}

EFFECTS["prepare"] = {
    "only what prepares": (
        replace(
            situation(held=record()),
            offers=(
                toy(Request(Notice("Asked", "no"))),
                replace(toy(Request(Notice("Asked", "one more"), own="4")), prepares=True),
            ),
        ),
        After(replace(record(), asked=(Asked("toy", NOW, own="4"),))),
        "one more",
    )
}

EFFECTS["leaveOffers"] = {
    "nothing was asked": (replace(situation(held=ANNOUNCED), offers=(toy(None),)), After(ANNOUNCED), ""),
    "nobody has to undo it": (
        replace(situation(held=ASKED_TWICE), offers=(toy(None),)),
        After(ANNOUNCED),
        "",
    ),
    "somebody has to undo it": (
        replace(
            situation(held=ASKED_TWICE),
            offers=(replace(toy(None), left=lambda _: Notice("Left", "put it back")),),
        ),
        After(ANNOUNCED),
        "Left: put it back",
    ),
}

EFFECTS["giveUp"] = {
    case: (
        replace(
            situation(node(unschedulable=True), held=replace(ASKED_TWICE, cordon=cordon)), offers=(toy(None),)
        ),
        After(replace(CLOSED_CASE, dismissed=ASKED_TWICE.events), node=changes),
        "Warning MaintenanceGivenUp: the toy did not do its maintenance after 2 requests",
    )
    for case, cordon, changes in (("ours", Cordon.OURS, OPENED), ("foreign", Cordon.FOREIGN, {}))
}

FAR = known(Kind.REDEPLOY, ids=("B2",), not_before=NOW + timedelta(days=6))
NEAR = known(ids=("A1",))
CLOSED = settings('windows: [{name: night, start: "22:00", end: "23:00"}]')


def reported(held: CaseRecord) -> Situation:
    """A node with an event that is due, and one for which no drain may begin yet."""
    near = judged(event(ids=("A1",), not_before=NOW + minutes(5)), CLOSED)
    far = judged(event(Kind.REDEPLOY, ids=("B2",), not_before=FAR.not_before), CLOSED)
    return situation(None, near, far, chosen=CLOSED, held=held)


NOT_DRAINED = replace(record(events=(NEAR, FAR)), drain=None)
WAITED = replace(NEAR, waits=True)
FOR_ANOTHER, FOR_A_FREEZE = known(ids=("Z9",)), known(Kind.FREEZE, ids=("Z9",))
EFFECTS["drain"] = {
    "its start is kept to the second, as the annotation keeps it": (
        situation(now=NOW + timedelta(microseconds=7)),
        After(CaseRecord(drain=DrainRecord(NOW))),
        "",
    ),
    "an event for which no drain may begin waits": (
        reported(NOT_DRAINED),
        After(replace(NOT_DRAINED, drain=DrainRecord(NOW), events=(NEAR, replace(FAR, waits=True)))),
        "",
    ),
    "a drain that is done covers what evicts no more": (
        reported(record(events=(FOR_ANOTHER, WAITED))),
        After(record(events=(FOR_ANOTHER, NEAR))),
        "",
    ),
    "it starts again for a kind that may evict more": (
        reported(record(events=(FOR_A_FREEZE, WAITED))),
        After(record(events=(FOR_A_FREEZE, NEAR), drain=DrainRecord(NOW))),
        "",
    ),
}

EFFECTS["uncordon"] = {
    case: (
        situation(node(unschedulable=True), held=record(cordon=cordon, quiet_since=NOW)),
        After(CLOSED_CASE, node=changes),
        f"MaintenanceDone: maintenance is over: {words}",
    )
    for case, cordon, changes, words in (
        ("ours", Cordon.OURS, OPENED, "uncordoned"),
        ("adopted", Cordon.ADOPTED_MECHANIC, OPENED, "uncordoned"),
        ("foreign", Cordon.FOREIGN, {}, "the cordon is not ours"),
    )
}


@pytest.mark.parametrize(
    ("trigger", "seen", "expected", "words"),
    [
        pytest.param(trigger, *row, id=f"{trigger}: {case}")
        for trigger, rows in EFFECTS.items()
        for case, row in rows.items()
    ],
)
def test_effects(trigger: str, seen: Situation, expected: After, words: str) -> None:
    effects = TRIGGERS[trigger](seen, Work(seen.node, seen.record))
    notices = [f"{notice.type.value} {notice.reason}: {notice.message}" for notice in effects.notices]

    tasks = () if expected.task is None else (expected.task,)
    assert (effects.record, effects.tasks) == (expected.record, tasks)
    assert effects.node == replace(seen.node, **expected.node)
    assert [words in notice for notice in notices] == [True] * bool(words)


def test_a_check_and_the_trigger_behind_it_ask_an_offer_once() -> None:
    seen: list[Situation] = []

    def due(situation: Situation) -> CheckResult:
        seen.append(situation)
        return passed("it is time")

    offer = Offer("toy", "the toy", due, lambda _: Request(Notice("Asked", "may it begin")))
    asking = replace(situation(held=record()), offers=(offer,))

    assert CHECKS["offerDue"](asking).verdict is Verdict.PASSED
    effects = TRIGGERS["askPlatform"](asking, Work(asking.node, asking.record))
    assert effects.record.asked_by("toy") is not None
    assert len(seen) == 1


def test_a_request_about_an_event_that_the_record_does_not_have_is_refused() -> None:
    about = toy(Request(Notice("Asked", "may it begin"), events=("C3",)))

    with pytest.raises(
        ValueError, match=r"^the offer toy asks about C3, which no event of the node has as ID$"
    ):
        TRIGGERS["askPlatform"](replace(situation(held=ANNOUNCED), offers=(about,)), Work(node(), ANNOUNCED))
