"""What EC2 reports about the instances of our nodes."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


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
