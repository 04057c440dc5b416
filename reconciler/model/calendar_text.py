"""Where the content of a calendar is, and what a pass has read of it."""

from __future__ import annotations

from datetime import UTC, tzinfo
from enum import StrEnum

from msgspec import Struct


class Holder(StrEnum):
    """What holds the content of a calendar."""

    FILE = "file"
    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"


class CalendarPlace(Struct, frozen=True):
    """Where the content of a calendar is, and how it is read.

    `path` is that of a file. An object has a `namespace` and an `object`; without a `key` its only key
    counts. `problem` says why the place is not known. `zone` is for times without a zone; with `zone_given`
    it also wins over the zone that the content names. With `aks`, the content is a maintenance
    configuration of AKS.
    """

    name: str
    holder: Holder = Holder.FILE
    path: str = ""
    namespace: str = ""
    object: str = ""
    key: str = ""
    problem: str = ""
    zone: tzinfo = UTC
    zone_given: bool = False
    aks: bool = False

    def __str__(self) -> str:
        """Return it for people: the path, or the object with its key."""
        if self.holder is Holder.FILE:
            return self.path
        key = f"/{self.key}" if self.key else ""
        return f"{self.holder} {self.namespace}/{self.object}{key}"


class CalendarText(Struct, frozen=True):
    """The content of a calendar: the last one that could be used. `unread` says why there is none.

    `note` says what is wrong with the newest content while an older one still counts.
    """

    text: str = ""
    unread: str = ""
    note: str = ""
