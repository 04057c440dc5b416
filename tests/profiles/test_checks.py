"""What each check answers, in one table: tests/profiles/test_plugins.py demands a row of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

import pytest

from reconciler.model.event import Kind, MaintenanceEvent, Status
from reconciler.model.instructions import Kept, PersonHold, Wait, Word, hold_text
from reconciler.model.node import MECHANIC_LABEL, REMEDIATOR_TAINT, Node
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import Asked, CaseRecord
from reconciler.model.schedule import CaseSchedule
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.passes.observe import wanted
from reconciler.passes.parts import Parts, Sources
from reconciler.profiles.case import CaseView
from reconciler.profiles.situation import Offer, Situation
from reconciler.profiles.vocabulary import CheckResult, failed, passed, unknown
from reconciler.settings.schema import Settings
from reconciler.starts.answer import wait_of_own_node
from tests.support.builders import (
    IN_UPGRADE,
    NOW,
    PREFIX,
    ask,
    event,
    judged,
    known,
    minutes,
    node,
    read_of,
    record,
    settings,
    situation,
)
from tests.support.cases import OFFER, TAKEN, azure_node, drained, judged_plan

ANSWERS: dict[str, Mapping[str, tuple[Situation, CheckResult]]] = {}
"""By check and case: the situation, and the answer with words that are in its reason."""

# Answers that hold no node.
yes, no = partial(passed, holds=False), partial(failed, holds=False)


def at(later: float) -> datetime:
    """So many minutes from now."""
    return NOW + minutes(later)


CORDONED = node("b", unschedulable=True)
LOST = node("b", ready=False, ready_since=at(-10))


def budgeted(reported: MaintenanceEvent, limit: int = 1, holder: Node = CORDONED) -> Situation:
    """A node with this event beside one that holds a place."""
    chosen = settings(f"budget: {{maxUnavailable: {limit}}}")
    return situation(node(), judged(reported, chosen), chosen=chosen, fleet=(node(), holder))


ANSWERS["budgetLeft"] = {
    "none is left": (budgeted(event()), failed("taken by b (cordoned by others)")),
    "none is left at the deadline": (budgeted(event(not_before=at(5))), failed("taken by b")),
    "the node is lost anyway": (budgeted(event(Kind.PREEMPT)), passed("exempt from the budget")),
    "the other counts as gone for long": (budgeted(event(), holder=LOST), failed("", at(20))),
    "the node is lost before": (
        budgeted(event(Kind.PREEMPT, not_before=at(25)), holder=LOST),
        failed("", at(10)),
    ),
    "the node is lost after": (
        budgeted(event(Kind.PREEMPT, not_before=at(60)), holder=LOST),
        failed("", at(20)),
    ),
}


def mechanics(label: str = "true", adopt: str = "[mechanic]", *, cordoned: bool = True) -> Situation:
    """A node that bears mechanic's label."""
    on = node(labels={MECHANIC_LABEL: label}, unschedulable=cordoned)
    return situation(on, chosen=settings(f"adopt: {adopt}"))


ANSWERS["cordonAdopted"] = {
    "mechanic's": (mechanics(), yes()),
    "not any more": (mechanics("false"), no("")),
    "a label without a cordon": (mechanics(cordoned=False), no("")),
    "not to be adopted": (mechanics(adopt="[]"), no("")),
}

REBOOT = judged(event())
STARTED = judged(event(status=Status.STARTED))
TOO_LATE = judged(
    event(Kind.LIVE_MIGRATION, status=Status.STARTED), settings("events: {LiveMigration: {drain: true}}")
)
SILENT = CaseView((), ("imds is silent",))

ANSWERS["drainAsked"] = {
    "nothing": (situation(), no("no event")),
    "an event asks": (situation(None, REBOOT), yes("Reboot requires a drain")),
    "it does not": (situation(None, judged(event(Kind.FREEZE))), no("is ignored")),
    "it is past its use": (situation(None, TOO_LATE), no("a drain would come too late")),
    "nobody can say": (situation(case=SILENT), unknown("imds is silent", holds=False)),
    "an event asks, whoever is silent": (situation(None, REBOOT, case=SILENT), yes("Reboot")),
}

WAITING = replace(known(Kind.REDEPLOY, ids=("B2",)), waits=True)
DRAINED_FOR_IT = record(events=(known(Kind.REDEPLOY, ids=("B2",)),))


def redeployed(held: CaseRecord) -> Situation:
    """A node with one event and this record."""
    return situation(None, judged(event(Kind.REDEPLOY, ids=("B2",))), held=held)


ANSWERS["drainDue"] = {
    "drained for it": (redeployed(DRAINED_FOR_IT), no("")),
    "drained for another": (redeployed(record(events=(known(ids=("A1",)),))), yes()),
    "it waits": (redeployed(record(events=(known(ids=("A1",)), WAITING))), yes()),
    "its kind has become worse": (redeployed(record(events=(known(ids=("B2",)), WAITING))), yes()),
    "not drained": (redeployed(replace(DRAINED_FOR_IT, drain=None)), yes()),
    "no event": (situation(held=CaseRecord()), no("")),
}


def ended(case: CaseView, quiet: datetime | None = None) -> Situation:
    """A node in maintenance whose events have been gone since then."""
    return situation(held=record(quiet_since=quiet), case=case)


ANSWERS["eventsGone"] = {
    "Started is there": (ended(CaseView((STARTED,))), failed("waits for the end of Reboot (Started)")),
    "nobody can say": (ended(SILENT), unknown("imds is silent")),
    "it settles": (ended(CaseView(), at(-1)), failed("settles until", at(1))),
    "seen first now": (ended(CaseView(), at(0)), failed("the node settles for 2m", at(2))),
    "it has settled": (ended(CaseView(), at(-2)), passed("have been gone since")),
}

ANSWERS["leftByRemediator"] = {
    "nobody else": (situation(), passed()),
    "the remediator has it": (situation(node(taints=(REMEDIATOR_TAINT,))), failed(REMEDIATOR_TAINT)),
    "an older remediator has it": (
        situation(node(taints=("remediator.aks.microsoft.com/unschedulable",))),
        failed("remediator.aks.microsoft.com/unschedulable"),
    ),
    "AKS upgrades it": (situation(node(pool="np", annotations=IN_UPGRADE)), failed("AKS upgrades pool np")),
}


TERMINATE = judged(event(Kind.TERMINATE))


def besides(judgement: JudgedEvent, until: int) -> JudgedEvent:
    """The event, left to another tool for so many minutes."""
    return replace(judgement, kept=Kept(tools=Wait("another tool has the node", at(until))))


ANSWERS["leftToUs"] = {
    "nobody else": (situation(None, REBOOT), passed()),
    "it changes at the first end": (
        situation(None, besides(REBOOT, 60), besides(TERMINATE, 30)),
        failed("another tool has the node", at(30)),
    ),
    "one event that waits for nobody is enough": (situation(None, besides(REBOOT, 60), TERMINATE), passed()),
}

ON_MOST = judged(
    dataclasses.replace(event(Kind.UNKNOWN), condition="KernelReady"),
    settings("conditions: {KernelReady: {}}"),
)
ON_MOST = replace(ON_MOST, kept=Kept(common=Wait("KernelReady is True on 3 of 3 managed nodes")))

ANSWERS["conditionOnFewNodes"] = {
    "no condition": (situation(None, judged(event())), passed()),
    "on most nodes": (situation(None, ON_MOST), failed("on 3 of 3 managed nodes")),
    "beside announced maintenance": (situation(None, judged(event()), ON_MOST), passed()),
}

OLDER = replace(judged(event()), kept=Kept(other=Wait("an older reconciler acts on these nodes")))

ANSWERS["onlyReconciler"] = {
    "alone": (situation(None, judged(event())), passed()),
    "beside an older one": (situation(None, OLDER), failed("older reconciler")),
}

TAKEN_AWAY = record(events=(known(Kind.PREEMPT, not_before=at(-1)),))
DOWN = node(ready=False, ready_since=at(-1))
ANSWERS["machineComesBack"] = {
    "another kind": (situation(DOWN, held=record(events=(known(not_before=at(-1)),))), passed()),
    "still Ready": (situation(node(), held=TAKEN_AWAY), passed()),
    "NotReady before the date": (
        situation(DOWN, held=record(events=(known(Kind.TERMINATE, not_before=at(1)),))),
        passed(),
    ),
    "called off before the date": (situation(DOWN, held=replace(TAKEN_AWAY, quiet_since=at(-2))), passed()),
    "taken": (situation(DOWN, held=TAKEN_AWAY), failed("Preempt has taken the machine")),
    "taken, without a date": (
        situation(DOWN, held=record(events=(known(Kind.TERMINATE),))),
        failed("it does not come back"),
    ),
}

ANSWERS["nodeReady"] = {
    "NotReady": (situation(node(ready=False, ready_since=at(-60))), failed("")),
    "Ready just now": (situation(node(ready_since=at(-1))), failed("", at(1))),
    "Ready for the settle time": (situation(node(ready_since=at(-2))), passed()),
}


def deferred(judgement: JudgedEvent, until: int) -> JudgedEvent:
    """The event, deferred for so many minutes."""
    return replace(judgement, kept=Kept(deferral=Wait("somebody wants it later", at(until))))


ANSWERS["notDeferred"] = {
    "it changes at the first end": (
        situation(None, deferred(REBOOT, 60), deferred(TERMINATE, 30)),
        failed("somebody wants it later", at(30)),
    ),
    "one deadline that demands the drain is enough": (
        situation(None, deferred(REBOOT, 60), TERMINATE),
        passed(),
    ),
}


def held(*, stops: bool, later: float = 0) -> Situation:
    """A node that a person holds for five minutes, so many minutes later."""
    text = hold_text(PersonHold(Word("alice@laptop", NOW, at(5)), stops))
    return situation(node(annotations={f"{PREFIX}/hold": text}), now=at(later))


ANSWERS["notHeld"] = {
    "not held": (situation(), passed()),
    "held": (held(stops=False), failed("", at(5))),
    "held with --now": (held(stops=True), failed("", at(5))),
    "it has ended": (held(stops=True, later=5), passed()),
}
ANSWERS["notStopped"] = {
    "held": (held(stops=False), passed()),
    "held with --now": (held(stops=True), failed("", at(5))),
}


def ours(reported: MaintenanceEvent, *, stuck: datetime | None = None) -> Situation:
    """Our own node with this event, while another one waits."""
    seen = situation(None, judged(reported))
    return replace(seen, goes_last=wait_of_own_node(1, stuck))


ANSWERS["othersFirst"] = {
    "another node": (situation(), passed()),
    "our own, alone": (replace(situation(), goes_last=wait_of_own_node(0, None)), passed()),
    "our own": (replace(situation(), goes_last=wait_of_own_node(1, None)), failed("")),
    "until its deadline": (ours(event(not_before=at(60))), failed("", at(45))),
    "until the others are stuck": (ours(event(not_before=at(60)), stuck=at(2)), failed("", at(2))),
    "at its deadline": (ours(event(not_before=at(5))), passed()),
    "no deadline": (ours(event()), failed("")),
    "Started": (ours(event(status=Status.STARTED)), passed()),
    "exempt, at any moment": (ours(event(Kind.PREEMPT)), passed()),
    "a date that can't be read": (ours(event(date_unreadable=True)), passed()),
}

LATER = judged_plan(plan=dataclasses.replace(OFFER, offered=False))
NEXT_WEEK = judged(event(not_before=NOW + timedelta(days=7)))


def emptied(*present: JudgedEvent, later: tuple[JudgedEvent, ...] = (), quiet: float = -2) -> Situation:
    """A node that was drained for a plan, with these events now."""
    case = CaseView(present, later=later)
    before = replace(drained(), quiet_since=at(quiet))
    return situation(azure_node(), *present, chosen=TAKEN, held=before, case=case)


def asked(seen: Situation, *, gives_up: bool) -> Situation:
    """The same with something asked; the case may end because that was in vain."""
    refused = (lambda _: failed("not yet")) if gives_up else None
    offer = Offer("toy", "the toy", lambda _: failed("no"), lambda _: None, refused=refused)
    return replace(seen, record=replace(seen.record, asked=(Asked("toy", NOW),)), offers=(offer,))


ANSWERS["plannedForLater"] = {
    "an offer that ended": (emptied(LATER), yes(LATER.because)),
    "an offer that stands": (emptied(judged_plan()), no("no plan for later")),
    "nothing at all": (emptied(), no("no plan for later")),
    "the platform is at it": (asked(emptied(LATER), gives_up=True), no("no plan for later")),
    "what was asked ends no case": (asked(emptied(LATER), gives_up=False), yes(LATER.because)),
    "the node settles first": (emptied(LATER, quiet=-1), failed("the node settles until", at(1))),
    "seen first now": (emptied(LATER, quiet=0), failed("the node settles for 2m", at(2))),
    "nobody can say": (
        situation(azure_node(), LATER, case=replace(SILENT, present=(LATER,))),
        no("no plan for later"),
    ),
    "another event, next week": (
        emptied(NEXT_WEEK, later=(NEXT_WEEK,)),
        yes("starts from 2026-11-28T10:45:00Z on"),
    ),
}


def once(offer: Offer) -> Situation:
    """A node for which this offer was used once."""
    return replace(situation(held=replace(record(), asked=(Asked(offer.name, NOW),))), offers=(offer,))


def toy(
    due: CheckResult | None = None, *, answered: CheckResult | None = None, refused: CheckResult | None = None
) -> Offer:
    """An offer that gives these answers."""
    return Offer(
        "toy",
        "the toy",
        lambda _: due or no("no"),
        lambda _: None,
        who="ann",
        by_itself=True,
        answered=lambda _: answered or passed(),
        answers="bob",
        refused=None if refused is None else lambda _: refused,
    )


def offering(*offers: Offer) -> Situation:
    """A node about which these can be asked."""
    return replace(situation(), offers=offers)


ASLEEP, AWAY = failed("the toy is asleep", at(9)), failed("the toy is away", at(5))
ANSWERS["offerDue"] = {
    "no plugin has one": (offering(), no("nothing is asked")),
    "one of two": (offering(toy(ASLEEP), toy(passed("it is time"))), yes("it is time")),
    "none, and the node waits for none": (offering(toy(no("not drained")), toy()), no("not drained; no")),
    "the node waits for each reason": (
        offering(toy(), toy(ASLEEP), toy(AWAY)),
        failed("the toy is asleep; the toy is away", at(5)),
    ),
    "not what has to be there first": (
        offering(replace(toy(passed("one more")), prepares=True)),
        no("nothing is asked"),
    ),
    "one is unknown": (offering(toy(ASLEEP), toy(unknown("who knows"))), unknown("who knows", at(9))),
}
ANSWERS["preparationDue"] = {
    "nothing has to be there first": (offering(toy(passed("it is time"))), no("nothing is asked")),
    "not yet": (offering(replace(toy(ASLEEP), prepares=True)), no("the toy is asleep", at(9))),
    "now": (offering(replace(toy(passed("one more")), prepares=True)), yes("one more")),
}
ANSWERS["offerAnswered"] = {
    "nothing is waited for": (offering(toy()), passed()),
    "what became of it": (offering(toy(), toy(answered=passed("it is done"))), passed("it is done")),
    "one of two": (offering(toy(), toy(answered=ASLEEP)), failed("the toy is asleep", at(9))),
}
ANSWERS["offerRefused"] = {
    "nothing was asked": (offering(toy(refused=passed("in vain"))), no("nothing is asked")),
    "the case does not end by it": (once(toy()), no("nothing is asked")),
    "in vain": (once(toy(refused=passed("in vain"))), yes("in vain")),
    "one of two": (
        replace(
            once(toy(refused=passed("in vain"))),
            offers=(toy(refused=failed("be patient")), toy(refused=passed("in vain"))),
        ),
        yes("in vain"),
    ),
    "it may still be done": (once(toy(refused=failed("be patient", at(3)))), no("be patient", at(3))),
}


def test_an_offer_says_who_can_end_what_it_waits_for() -> None:
    due, answered = offering(toy(ASLEEP), toy(AWAY)), offering(toy(answered=ASLEEP))

    assert (ask("offerDue", due).who, ask("offerDue", due).by_itself) == ("ann", True)
    assert (ask("offerAnswered", answered).who, ask("offerAnswered", answered).by_itself) == ("bob", True)


def spaced(ago: float | None, kind: Kind = Kind.REBOOT, *, spacing: int = 10) -> Situation:
    """A fleet whose last start was so many minutes ago."""
    chosen = settings(f"budget: {{spacing: {spacing}m}}")
    ledger = Ledger(None if ago is None else at(-ago))
    return situation(None, judged(event(kind)), chosen=chosen, ledger=ledger)


ANSWERS["spacingKept"] = {
    "too soon": (spaced(9), failed("", at(1))),
    "long enough": (spaced(10), passed()),
    "no spacing is set": (spaced(0, spacing=0), passed()),
    "lost anyway": (spaced(1, Kind.PREEMPT), passed()),
}

FAR = event(not_before=at(240))
SOON = event(not_before=at(10))
NIGHT = settings('windows: [{name: night, start: "22:00", end: "02:00"}]')


def planned(
    start: float | None,
    reported: MaintenanceEvent = SOON,
    chosen: Settings | None = None,
    *,
    observed: bool = False,
) -> Situation:
    """A node whose drain is planned for so many minutes from now."""
    schedule = CaseSchedule(None if start is None else at(start), because="the plan", observed=observed)
    return replace(situation(None, judged(reported, chosen), chosen=chosen), schedule=schedule)


ANSWERS["startPlanned"] = {
    "no schedule, before the earliest start": (situation(None, judged(FAR)), failed("", at(240 - 15 - 60))),
    "no schedule, after it": (situation(None, judged(SOON)), passed()),
    "now": (planned(0), passed()),
    "a pass is late": (planned(-1), passed()),
    "later": (planned(1), failed("its drain starts at 2026-11-21T12:01:00Z: the plan", at(1))),
    "observed": (planned(1, observed=True), failed("its drain would start at 2026-11-21T12:01:00Z", at(1))),
    "never": (planned(None), failed("")),
    "what windowOpen reports": (planned(600, FAR, NIGHT), passed()),
    "exempt and due": (planned(5, event(Kind.PREEMPT)), passed()),
}

ANSWERS["startsAllowed"] = {
    "Enforce": (situation(chosen=settings(mode="Enforce")), passed()),
    "Finish": (situation(chosen=settings(mode="Finish")), failed("")),
}

ANSWERS["uncordonedByOthers"] = {
    "cordoned": (situation(node(unschedulable=True)), no("")),
    "open": (situation(), yes()),
}

AFTERNOON = settings('windows: [{name: later, start: "14:00", end: "15:00"}]')
WAITS = judged(event(), AFTERNOON)
DUE = judged(event(not_before=NOW), AFTERNOON)
ANSWERS["windowOpen"] = {
    "no event": (situation(), failed("no event requires a drain")),
    "the drain is for its only event": (
        situation(None, judged(event()), held=record(events=(known(),))),
        failed("no other event requires a drain"),
    ),
    "it waits": (situation(None, WAITS), failed("waits for later", at(120))),
    "the first of two may start at its deadline": (
        situation(None, WAITS, judged(event(not_before=at(60)), AFTERNOON)),
        failed("", at(45)),
    ),
    "it is due": (situation(None, DUE), passed("which overrules: no maintenance window is open")),
    "one of them is due": (situation(None, WAITS, DUE), passed("which overrules")),
}


@pytest.mark.heavy
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
