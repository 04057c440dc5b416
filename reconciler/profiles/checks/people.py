"""Checks of what people say, with annotations or a cordon."""

from __future__ import annotations

from reconciler.model.holds import NOBODY
from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.model.outcome import WaitsFor
from reconciler.model.plan import JudgedEvent
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, check, failed, passed
from reconciler.settings.draining import Adoptable
from reconciler.settings.schema import Settings

_HOLDER = "whoever holds it: `{resume}{config}` ends the hold"


def starting(situation: Situation) -> tuple[JudgedEvent, ...]:
    """Return the events for which windows and deadline allow a start now; all that ask, if there is none."""
    return situation.start.opening or situation.undrained


@check(
    "notDeferred",
    ordinarily="nobody has deferred the drain",
    waits_for=WaitsFor.PERMISSION,
    who=f"{NOBODY} at that moment; or a person: `{{resume}}{{config}}` ends it",
    by_itself=True,
    by_person=True,
    waived=True,
)
def not_deferred(situation: Situation) -> CheckResult:
    """Pass for an event whose drain is not deferred, or whose deadline demands it."""
    waits = [judged.kept.deferral for judged in starting(situation)]
    found = [wait for wait in waits if wait is not None]
    if len(found) < len(waits) or not found:
        return passed()
    return failed(found[0].because, min((one.until for one in found if one.until), default=None))


@check(
    "notHeld", ordinarily="nobody holds the node", waits_for=WaitsFor.PERMISSION, who=_HOLDER, by_person=True
)
def not_held(situation: Situation) -> CheckResult:
    """Pass unless a person holds the node. A hold wins over the deadline."""
    hold = situation.instructions.hold
    if hold is None:
        return passed()
    return failed(hold.words(situation.node.name), hold.word.until)


@check(
    "notStopped",
    ordinarily="nobody has stopped its maintenance",
    waits_for=WaitsFor.PERMISSION,
    who=_HOLDER,
    by_person=True,
)
def not_stopped(situation: Situation) -> CheckResult:
    """Pass unless a person holds the node with `--now`. Any other hold keeps only drains from a start."""
    hold = situation.instructions.hold
    if hold is None or not hold.stops:
        return passed()
    return failed(hold.words(situation.node.name), hold.word.until)


def is_adoptable(node: Node, settings: Settings) -> bool:
    """Whether the node has our cordon without its record, or that of a tool which the settings adopt."""
    if node.cordon_of:
        return node.unschedulable
    adopts = Adoptable.MECHANIC in settings.adopt
    return adopts and node.unschedulable and node.labels.get(MECHANIC_LABEL, "").lower() == "true"


@check("cordonAdopted")
def cordon_adopted(situation: Situation) -> CheckResult:
    """Pass when there is such a cordon. It holds nothing."""
    if situation.node.cordoned_by_us and situation.node.unschedulable:
        return passed("the reconciler cordoned the node, and somebody removed its record", holds=False)
    if situation.node.cordon_of and situation.node.unschedulable:
        return passed(f"{situation.node.cordon_of} cordoned the node, and its work goes on here", holds=False)
    if is_adoptable(situation.node, situation.settings):
        reason = f"mechanic cordoned the node (label {MECHANIC_LABEL}), and adopt includes mechanic"
        return passed(reason, holds=False)
    return failed("no cordon to adopt", holds=False)


@check("uncordonedByOthers")
def uncordoned_by_others(situation: Situation) -> CheckResult:
    """Pass when the node is in maintenance but no longer cordoned. It holds nothing."""
    if situation.node.unschedulable:
        return failed("the node is cordoned", holds=False)
    return passed("someone uncordoned the node", holds=False)
