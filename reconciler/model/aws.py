"""What EC2 says of the instances behind our nodes, and when each region may be asked again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class InstanceEvent:
    """A scheduled event of one instance, as DescribeInstanceStatus has it; moments are UTC.

    `not_before` and `not_after` are the scheduled time, `latest` (AWS: NotBeforeDeadline) is until when the
    start may be moved. `unreadable` means that a NotBefore was given and can't be read.
    """

    instance: str
    id: str
    code: str
    description: str = ""
    not_before: datetime | None = None
    not_after: datetime | None = None
    latest: datetime | None = None
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class RegionListing:
    """What asking for one region came to; with a `problem` there was no whole answer."""

    region: str
    events: tuple[InstanceEvent, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RegionAnswer:
    """The last answer for one region, in force until it may be asked for `again` (UTC)."""

    region: str
    asked: datetime
    again: datetime
    events: tuple[InstanceEvent, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AwsMemory:
    """All answers in force, by region."""

    answers: tuple[RegionAnswer, ...] = ()

    def of(self, region: str) -> RegionAnswer | None:
        """The answer for a region, None where it was never asked for."""
        return next((one for one in self.answers if one.region == region), None)
