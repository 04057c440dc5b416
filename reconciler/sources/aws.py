"""AWS's scheduled events as a source: all events of every instance, from DescribeInstanceStatus.

What each code means for the workload decides its kind (EC2 User Guide, "Scheduled events for your
instances"). AWS tells of no start: an event counts as started once its NotBefore has come, and it is over
when AWS lists it no more, or lists it as completed or cancelled.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta

from reconciler.model.aws import AwsMemory, InstanceEvent, RegionAnswer, RegionListing
from reconciler.model.event import Answer, Initiator, Kind, Reading, Signal, Status
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Node

SOURCE = "aws"

CODES: Mapping[str, Kind] = {
    # The instance, or its host, restarts; its disks stay.
    "instance-reboot": Kind.REBOOT,
    "system-reboot": Kind.REBOOT,
    # Of network or of power: with the latter the instance is rebooted, and the event does not say which.
    "system-maintenance": Kind.REBOOT,
    # Stopped, and on another host when it is started again: the instance store is lost.
    "instance-stop": Kind.REDEPLOY,
    # Stopped or terminated, and never started again by AWS.
    "instance-retirement": Kind.TERMINATE,
}

RETRY = timedelta(minutes=2)
"""How soon a region is asked for again after a failure."""

_PROVIDER_ID = re.compile(r"^aws:///([a-z0-9-]+)/(i-[0-9a-f]+)$", re.IGNORECASE)
# `eu-west-1a`, but also the local zone `us-west-2-lax-1a` and `us-gov-west-1b`: up to the first number.
_REGION = re.compile(r"^[a-z]+(?:-[a-z]+)+?-\d+", re.IGNORECASE)
# AWS keeps what is over in the list for up to a week, and says so in the description's first word.
_OVER = re.compile(r"^\s*\[(completed|cancell?ed)\]", re.IGNORECASE)
# A clock that was ahead when an answer was written must not silence us.
_SPARE = timedelta(minutes=1)


def instance_of(provider_id: str) -> tuple[str, str] | None:
    """Return region and instance of a node's providerID; None where it is no EC2 instance."""
    found = _PROVIDER_ID.match(provider_id)
    region = _REGION.match(found[1]) if found else None
    return (region[0].casefold(), found[2].casefold()) if found and region else None


def listing(region: str, statuses: Iterable[Mapping[str, object]]) -> RegionListing:
    """Return what DescribeInstanceStatus says (the items of its InstanceStatuses), but for what is over."""
    found: list[InstanceEvent] = []
    for status in statuses:
        instance = str(status.get("InstanceId") or "").casefold()
        events = status.get("Events")
        found += [
            _event(instance, event)
            for event in (events if isinstance(events, list) else ())
            if isinstance(event, Mapping) and not _OVER.match(str(event.get("Description") or ""))
        ]
    return RegionListing(region, tuple(sorted(found, key=lambda one: (one.instance, one.id, one.code))))


def _event(instance: str, event: Mapping[str, object]) -> InstanceEvent:
    not_before, unreadable = _moment(event.get("NotBefore"))
    return InstanceEvent(
        instance=instance,
        id=str(event.get("InstanceEventId") or ""),
        code=str(event.get("Code") or ""),
        description=" ".join(str(event.get("Description") or "").split()),
        not_before=not_before,
        not_after=_moment(event.get("NotAfter"))[0],
        latest=_moment(event.get("NotBeforeDeadline"))[0],
        unreadable=unreadable,
    )


def _moment(value: object) -> tuple[datetime | None, bool]:
    """Return the moment in whole seconds, and whether there was one that can't be read."""
    if value is None or value == "":
        return None, False
    try:
        found = from_text(value.isoformat() if isinstance(value, datetime) else str(value))
    except (ValueError, OverflowError):
        return None, True
    return found.astimezone(UTC).replace(microsecond=0), False


def regions(nodes: Iterable[Node]) -> dict[str, set[str]]:
    """Return the regions of these nodes, with their instances."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        if (known := instance_of(node.provider_id)) is not None:
            found.setdefault(known[0], set()).add(known[1])
    return found


def due(nodes: Iterable[Node], memory: AwsMemory, now: datetime) -> tuple[str, ...]:
    """Return the regions that are to be asked for now."""
    return tuple(region for region in sorted(regions(nodes)) if _is_due(memory.of(region), now))


def _is_due(answer: RegionAnswer | None, now: datetime) -> bool:
    return answer is None or now >= answer.again or answer.asked > now + _SPARE


def remembered(
    memory: AwsMemory,
    listings: Collection[RegionListing],
    nodes: Iterable[Node],
    every: timedelta,
    now: datetime,
) -> AwsMemory:
    """Return what is in force once these regions have been asked for; without any, what was before."""
    if not listings:
        return memory
    now = now.replace(microsecond=0)
    fresh = {one.region: one for one in listings}
    answers = []
    for region, instances in sorted(regions(nodes).items()):
        told, before = fresh.get(region), memory.of(region)
        if told is None:
            if before is not None:
                answers.append(before)
        elif told.problem:
            answers.append(RegionAnswer(region, now, now + min(every, RETRY), problem=told.problem))
        else:
            ours = tuple(event for event in told.events if event.instance in instances)
            answers.append(RegionAnswer(region, now, now + every, ours))
    return AwsMemory(tuple(answers))


def read(node: Node, memory: AwsMemory, now: datetime) -> Reading | None:
    """Return what AWS says of the node's instance, None where it is none of AWS's."""
    known = instance_of(node.provider_id)
    if known is None:
        return None
    region, instance = known
    answer = memory.of(region)
    if answer is None:
        return _unknown(f"region {region} has not been asked for yet")
    if answer.problem:
        return _unknown(answer.problem)
    if now >= answer.again:
        return _unknown(f"the last answer for region {region} is of {to_text(answer.asked)}")
    signals = tuple(_signal(event, now) for event in answer.events if event.instance == instance)
    return Reading(SOURCE, Answer.EVENT, signals) if signals else Reading(SOURCE, Answer.NO_EVENT)


def _unknown(because: str) -> Reading:
    return Reading(SOURCE, Answer.UNKNOWN, because=because)


def _signal(event: InstanceEvent, now: datetime) -> Signal:
    words = [f"{event.code}: {event.description}".removesuffix(": ")]
    if event.not_after:
        words.append(f"until {to_text(event.not_after)}")
    if event.latest:
        words.append(f"its start may be moved until {to_text(event.latest)}")
    begun = event.not_before is not None and event.not_before <= now
    return Signal(
        SOURCE,
        CODES.get(event.code.casefold(), Kind.UNKNOWN),
        Status.STARTED if begun else Status.SCHEDULED,
        not_before=event.not_before,
        id=event.id,
        description="; ".join(words),
        initiator=Initiator.PLATFORM,
        resources=(event.instance,),
        date_unreadable=event.unreadable,
    )


def moments(memory: AwsMemory, now: datetime) -> Iterable[datetime]:
    """Yield when what is said may change: a region is asked again, an event's time comes."""
    for answer in memory.answers:
        yield from (
            moment
            for moment in (answer.again, *(event.not_before for event in answer.events))
            if moment is not None and moment > now
        )
