"""Checks of the platform: its events, its own remediation, and the node."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.calendar.values import format_duration
from reconciler.model.holds import NOBODY
from reconciler.model.moments import to_text
from reconciler.model.node import upgrade_of
from reconciler.model.record import SelfService
from reconciler.profiles.case import taken_for_good
from reconciler.profiles.checks.people import starting
from reconciler.profiles.endings import why_not_asked
from reconciler.profiles.plugins import CheckResult, check, failed, passed, unknown
from reconciler.profiles.situation import Situation
from reconciler.settings.schema import Mode


@check(
    "acknowledgeDue",
    who="whoever can drain the other nodes of the event: `reconciler report` says of each what it waits for",
    by_itself=True,
)
def acknowledge_due(situation: Situation) -> CheckResult:
    """Pass when every VM of an event that the settings acknowledge is a drained node (law 12)."""
    record = situation.record
    if record.drain is None or record.drain.done is None:
        return failed("the node is not drained yet", holds=False)
    refused = [f"event {one.id} is not acknowledged: {one.refusal}" for one in situation.held_back]
    if situation.to_acknowledge:
        ids = ", ".join(one.id for one in situation.to_acknowledge)
        return passed(f"every VM of event {ids} is drained", holds=False)
    if refused:
        return failed("; ".join(refused))
    return failed("there is no event to acknowledge", holds=False)


@check("eventsGone", who="{ends}", waits=True)
def events_gone(situation: Situation) -> CheckResult:
    """Pass after the settle time without an event. Started is not gone, and unknown is not healthy."""
    case = situation.case
    if case.present:
        names = dict.fromkeys(f"{one.event.kind} ({one.event.status})" for one in case.present)
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
    waits = [one.kept.tools for one in events if one.kept.tools is not None]
    if len(waits) < len(events) or not waits:
        return passed()
    until = min((one.until for one in waits if one.until is not None), default=None)
    return failed("; ".join(dict.fromkeys(one.because for one in waits)), until)


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


ATTEMPTS = 3
PAUSE = timedelta(minutes=10)
"""Between two attempts, times the number of attempts. A redeploy itself takes some minutes."""

PATIENCE = timedelta(hours=1)
"""How long after the last attempt the node waits for a boot and for the end of Azure's plan."""


@check("selfServiceDue", who=f"{NOBODY} when Azure accepts the request", by_itself=True)
def self_service_due(situation: Situation) -> CheckResult:
    """Pass when the node is drained, the offer is valid, and no attempt is in progress."""
    refusal, until = why_not_due(situation)
    if refusal:
        twin = situation.twin
        return failed(refusal, until, holds=bool(twin) and refusal == why_not_asked(situation.node, twin))
    return passed("Azure allows us to start it, and the node is drained", holds=False)


def why_not_due(situation: Situation) -> tuple[str, datetime | None]:
    """Return why not to ask Azure now, and until when. An empty reason: ask it."""
    record, now = situation.record, situation.now
    offered = [one.after_drain.offered for one in situation.judged if one.asks]
    if not any(offered):
        return "Azure offers no maintenance, or the settings do not use the offer", None
    if not all(offered):
        return "there is another event, so the platform is already working on the VM", None
    refusal = why_not_asked(situation.node, situation.twin)
    if refusal and not situation.twin:
        return refusal, None
    if record.drain is None or record.drain.done is None:
        return "the node is not drained yet", None
    if situation.undrained:
        return "a drain for it may not start yet", None
    if refusal:
        return refusal, None
    asked = record.self_service
    if asked is None:
        return "", None
    if has_booted(situation, asked):
        return "the node has booted since; waits until Azure no longer reports the plan", None
    if asked.attempt >= ATTEMPTS:
        return f"Azure was asked {ATTEMPTS} times", None
    again = asked.asked + PAUSE * asked.attempt
    if now < again:
        return f"Azure was asked at {to_text(asked.asked)}", again
    return "", None


def has_booted(situation: Situation, asked: SelfService) -> bool:
    now = situation.node.boot_id
    return bool(asked.boot_id and now) and now != asked.boot_id


@check(
    "selfServiceDone",
    ordinarily="Azure was not asked to do maintenance",
    who="Azure, which does the maintenance",
    by_itself=True,
)
def self_service_done(situation: Situation) -> CheckResult:
    """Pass when no maintenance was requested, the node has booted since, or the request is long ago."""
    asked = situation.record.self_service
    if asked is None:
        return passed()
    request = f"asked Azure at {to_text(asked.asked)} (attempt {asked.attempt})"
    if has_booted(situation, asked):
        return passed(f"{request}, and the node has booted since")
    until = asked.asked + PATIENCE
    if situation.now >= until:
        return passed(f"{request}, but the node did not boot")
    reason = f"{request}; the node has not booted since"
    return failed(reason, until)


@check("selfServiceFailed")
def self_service_failed(situation: Situation) -> CheckResult:
    """Pass when Azure still plans the maintenance, and there are no attempts left."""
    asked, case = situation.record.self_service, situation.case
    if asked is None or not case.present or case.unknown:
        return failed("nothing has failed", holds=False)
    if any(one.event.plan is None for one in case.present):
        because = "there is a current event, which holds the node"
        return failed(because, holds=False)
    until = asked.asked + PATIENCE
    if situation.now < until:
        return failed("the last attempt may still succeed", until, holds=False)
    if not why_not_due(situation)[0]:
        return failed("there are attempts left", holds=False)
    reason = f"Azure still plans it {format_duration(PATIENCE)} after attempt {asked.attempt}"
    return passed(reason, holds=False)
