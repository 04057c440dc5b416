"""Checks of the platform: its events, its own remediation, and the node."""

from __future__ import annotations

from datetime import datetime

from reconciler.calendar.values import format_duration
from reconciler.model.holds import NOBODY
from reconciler.model.moments import to_text
from reconciler.model.node import upgrade_of
from reconciler.profiles.case import taken_for_good
from reconciler.profiles.checks.people import starting
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, check, failed, passed, unknown
from reconciler.settings.schema import Mode


@check("eventsGone", who="{ends}", waits=True)
def events_gone(situation: Situation) -> CheckResult:
    """Pass after the settle time without an event. Started is not gone, and unknown is not healthy."""
    case = situation.case
    if case.present:
        names = dict.fromkeys(f"{judged.event.kind} ({judged.event.status})" for judged in case.present)
        return failed(f"waits for the end of {', '.join(names)}")
    if case.unknown:
        return unknown("; ".join(case.unknown))
    gone, until = f"the events have been gone since {to_text(situation.quiet_since)}", situation.settles_until
    if until is None:
        return passed(gone)
    return settles("the events are gone", gone, situation, until)


def settles(now: str, since: str, situation: Situation, until: datetime) -> CheckResult:
    """Return that the node settles `until` then; `now` says what is over, and `since` also since when."""
    if situation.settings.mode is Mode.OBSERVE:
        # Nothing records since when, so the time never passes.
        return failed(f"{now}, and mode Observe uncordons no node")
    if situation.quiet_since >= situation.now.replace(microsecond=0):
        # A command that writes nothing says the same until a pass has recorded it.
        settle = format_duration(situation.settings.uncordon.settle)
        return failed(f"{now}, seen first now; the node settles for {settle}", until)
    return failed(f"{since}; the node settles until {to_text(until)}", until)


@check(
    "leftByRemediator",
    ordinarily="AKS is not working on the node",
    who="AKS: it removes its taint, or the annotations of its upgrade",
    by_itself=True,
)
def left_by_remediator(situation: Situation) -> CheckResult:
    """Pass without the taint and the annotations of an upgrade.

    The reconciler never removes them, and never uncordons a node that has them.
    """
    if taint := situation.node.remediator_taint:
        return failed(f"AKS's remediator is working on the node (taint {taint})")
    if situation.node.in_upgrade:
        return failed(upgrade_of(situation.node.agent_pool))
    return passed()


@check(
    "leftToUs",
    ordinarily="no other tool is working on the node",
    who=f"{NOBODY} when the other tool is done with the node, at the latest start of the case at the latest",
    by_itself=True,
)
def left_to_us(situation: Situation) -> CheckResult:
    """Pass unless another tool works on the node, or AKS upgrades its pool: see `beside_others`.

    An event whose latest start has come waits for none of them.
    """
    events = starting(situation)
    waits = [event.kept.tools for event in events if event.kept.tools is not None]
    if len(waits) < len(events) or not waits:
        return passed()
    until = min((wait.until for wait in waits if wait.until is not None), default=None)
    return failed("; ".join(dict.fromkeys(wait.because for wait in waits)), until)


@check(
    "nodeReady",
    ordinarily="the node is Ready",
    who="the administrator of the node: `kubectl describe node {node}`",
)
def node_ready(situation: Situation) -> CheckResult:
    """Pass when Ready has been True for `uncordon.settle`."""
    if not situation.node.ready:
        return failed("the node is NotReady")
    since = situation.node.ready_changed
    until = since + situation.settings.uncordon.settle if since else None
    if since and until and situation.now < until:
        reason = f"the node has been Ready since {to_text(since)}; it settles until {to_text(until)}"
        return failed(reason, until)
    return passed()


@check(
    "machineComesBack",
    ordinarily="the platform does not take the machine for good",
    who="a person, if the cloud does not delete the node: `kubectl delete node {node}` ends the case; "
    "`{release}` gives up a machine that was started again",
)
def machine_comes_back(situation: Situation) -> CheckResult:
    """Pass unless the node is NotReady since the platform has taken its VM for good."""
    taken = taken_for_good(situation.record)
    if taken is None or situation.node.ready or situation.now < taken[1]:
        return passed()
    reason = f"{taken[0].kind} has taken the machine, and the node is NotReady: it does not come back"
    return failed(reason)
