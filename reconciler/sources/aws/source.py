"""AWS's scheduled events as a source: all events of every instance, from DescribeInstanceStatus.

What each code means for the workload decides its kind (EC2 User Guide, "Scheduled events for your
instances"). AWS announces events up to two weeks ahead, so an event is a plan until it starts. AWS does not
report the start: an event counts as started from its NotBefore on. It is over when AWS no longer lists it, or
lists it as completed or cancelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from pydantic import Field, model_validator

from reconciler.model import limits
from reconciler.model.event import Initiator, Kind, PlatformPlan, Reading, Signal, Status
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Node
from reconciler.model.polling import Listing
from reconciler.passes.plugin import SourceContext
from reconciler.passes.polled import PolledSource, with_settings
from reconciler.settings.fields import Duration, Flag, Section
from reconciler.settings.foreign import value_of
from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.schema import Settings, SourceSection

_OFTEN = timedelta(minutes=1)


class AwsSource(Section):
    """The EC2 API of AWS: scheduled events of instances."""

    enabled: Flag = Field(
        default=False,
        description="Whether it is queried, with the extra `aws` and permission to describe instances.",
    )
    every: Duration = Field(
        default=timedelta(minutes=5), description="How often, at least 1m; one list per region."
    )
    ahead: Duration | None = Field(
        default=None,
        description="How long before the event a drain may start, as `sources.arm.ahead` says. Not for "
        "a host that fails. "
        "Default: `events.<Kind>.ahead` before the latest start.",
    )

    @model_validator(mode="after")
    def _not_too_often(self) -> AwsSource:
        if self.every < _OFTEN:
            raise Mistakes((Mistake(("every",), "is shorter than 1m; EC2 limits the rate of calls"),))
        return self


SOURCE = "aws"

SECTION: SourceSection[AwsSource] = SourceSection(
    key=SOURCE,
    type=AwsSource,
    default=AwsSource(),
    description="Scheduled events of EC2. See docs/aws.md.",
    # karpenter-provider-aws, pkg/controllers/nodeclaim/instancestatus
    karpenter_reads="events of EC2",
)

SECTIONS = (SECTION,)

CODES: Mapping[str, Kind] = {
    # The instance restarts; its disks stay.
    "instance-reboot": Kind.REBOOT,
    # AWS calls it reboot migration: the instance restarts on another host, with what its disks have.
    "system-reboot": Kind.REBOOT,
    # Network or power. The latter reboots the instance, and the event does not say which one it is.
    "system-maintenance": Kind.REBOOT,
    # Stopped, and on another host when it is started again: the instance store is lost.
    "instance-stop": Kind.REDEPLOY,
    # Stopped or terminated, and never started again by AWS.
    "instance-retirement": Kind.TERMINATE,
}

# AWS announces these where the host fails ("degraded hardware"), and advises to act before the date.
DEGRADED = frozenset({"instance-stop", "instance-retirement"})

# Of limited length: a region is a part of an address, an instance has 17 digits, or 8 in the older form.
_PROVIDER_ID = re.compile(r"aws:///([a-z0-9-]{1,40})/(i-[0-9a-f]{1,17})", re.IGNORECASE | re.ASCII)
# `eu-west-1a`, but also the local zone `us-west-2-lax-1a` and `us-gov-west-1b`: up to the first number.
_REGION = re.compile(r"[a-z]{2,8}(?:-[a-z]{1,12}){1,3}?-[0-9]{1,2}", re.IGNORECASE | re.ASCII)
# AWS lists an event for up to a week after its end, with this as the first word of its description.
_OVER = re.compile(r"^\s*\[(completed|cancell?ed)\]", re.IGNORECASE)


class InstanceEvent(Struct, frozen=True):
    """A scheduled event of one instance, as DescribeInstanceStatus has it; moments are UTC.

    `not_before` and `not_after` are the scheduled time, `latest` (AWS: NotBeforeDeadline) is until when the
    start may be moved. `unreadable` means that a NotBefore was given and can't be read.
    """

    id: str
    code: str
    description: str = ""
    not_before: datetime | None = None
    not_after: datetime | None = None
    latest: datetime | None = None
    unreadable: bool = False


def instance_of(provider_id: str) -> tuple[str, str] | None:
    """Return region and instance of a node's providerID; None if it is no EC2 instance."""
    found = _PROVIDER_ID.fullmatch(provider_id)
    region = _REGION.match(found[1]) if found else None
    return (region[0].casefold(), found[2].casefold()) if found and region else None


def listing(region: str, statuses: Iterable[Mapping[str, object]]) -> Listing[str, InstanceEvent]:
    """Return the events in an answer of DescribeInstanceStatus (its InstanceStatuses) that are not over."""
    found: list[tuple[str, InstanceEvent]] = []
    for status in statuses:
        instance = str(value_of(status, "InstanceId") or "").casefold()
        events = value_of(status, "Events")
        found += [
            (instance, _event(event))
            for event in (events if isinstance(events, list) else ())
            if isinstance(event, Mapping) and not _OVER.match(str(value_of(event, "Description") or ""))
        ]
    return Listing(region, tuple(found))


def _event(event: Mapping[str, object]) -> InstanceEvent:
    not_before, unreadable = _moment(value_of(event, "NotBefore"))
    return InstanceEvent(
        id=limits.text(str(value_of(event, "InstanceEventId") or ""), limits.NAME),
        code=limits.text(str(value_of(event, "Code") or ""), limits.NAME),
        description=limits.text(" ".join(str(value_of(event, "Description") or "").split())),
        not_before=not_before,
        not_after=_moment(value_of(event, "NotAfter"))[0],
        latest=_moment(value_of(event, "NotBeforeDeadline"))[0],
        unreadable=unreadable,
    )


def _moment(value: object) -> tuple[datetime | None, bool]:
    """Return the moment in whole seconds, and whether it can't be read."""
    if value is None or value == "":
        return None, False
    try:
        found = from_text(value.isoformat() if isinstance(value, datetime) else str(value))
    except (ValueError, OverflowError):
        return None, True
    return found.astimezone(UTC).replace(microsecond=0), False


class Ec2Events(PolledSource[str, InstanceEvent]):
    """Scheduled events of EC2 instances; one list for each region."""

    name = SOURCE
    reports_start = True
    who = "the administrator of the cluster: may its role read EC2? See docs/aws.md"
    client = "reconciler.sources.aws.client"
    fact = InstanceEvent
    retry = timedelta(minutes=2)
    # EC2 lists the instances with an event, and no others.
    complete = False

    def section(self, settings: Settings) -> AwsSource:
        """Return `sources.aws`."""
        return SECTION.of(settings)

    def locate(self, node: Node) -> tuple[str, str] | None:
        """Return region and instance, None if the node is no EC2 instance."""
        return instance_of(node.provider_id)

    def describe(self, scope: str) -> str:
        """Return the region in words."""
        return f"region {scope}"

    def signals(self, name: str, facts: Sequence[InstanceEvent], now: datetime) -> tuple[Signal, ...]:
        """Return every event of the instance."""
        return tuple(_signal(event, name, now) for event in facts)

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return the events of the node, those that are planned with the settings that apply to them."""
        section = self.section(context.settings)
        return tuple(with_settings(one, section.ahead) for one in super().read(node, context))

    def moments(self, fact: InstanceEvent) -> Iterable[datetime | None]:
        """Yield when the event starts."""
        yield fact.not_before


SOURCES = (Ec2Events(),)


def _signal(event: InstanceEvent, instance: str, now: datetime) -> Signal:
    words = [f"{event.code}: {event.description}".removesuffix(": ")]
    if event.not_after:
        words.append(f"until {to_text(event.not_after)}")
    if event.latest:
        words.append(f"its start may be moved until {to_text(event.latest)}")
    begun = event.not_before is not None and event.not_before <= now
    # An event without a readable date may start at any time, so it is no plan for later.
    planned = event.not_before is not None and not begun
    code = event.code.casefold()
    return Signal(
        SOURCE,
        CODES.get(code, Kind.UNKNOWN),
        Status.STARTED if begun else Status.SCHEDULED,
        not_before=event.not_before,
        id=event.id,
        description="; ".join(words),
        initiator=Initiator.PLATFORM,
        resources=(instance,),
        date_unreadable=event.unreadable,
        plan=PlatformPlan(until=event.not_after) if planned else None,
        degraded=code in DEGRADED,
    )
