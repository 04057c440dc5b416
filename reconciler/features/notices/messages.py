"""What notices say about a node: the topics, and one message."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import timedelta
from enum import StrEnum
from zlib import crc32

from msgspec import Struct

from reconciler.model.limits import count_of
from reconciler.model.values import Names, UnixMoment, replace


class Topic(StrEnum):
    """What a message is about. Settings and receivers name the values, so they never change."""

    RECEIVED = "Received"
    """The platform announced an event."""

    PLANNED = "Planned"
    """The start of the drain is planned."""

    APPROVAL_NEEDED = "ApprovalNeeded"
    """The drain needs the approval of a person, and has none."""

    HELD = "Held"
    """Something other than the time holds the start."""

    WILL_BE_MISSED = "WillBeMissed"
    """The node will not be drained in time."""

    NO_LONGER_MISSED = "NoLongerMissed"
    """What was said with `WillBeMissed` no longer holds. Who got that gets this, too."""

    UNGUARDED = "Unguarded"
    """Somebody uncordoned the node, and the platform may still start."""

    TWO_RECONCILERS = "TwoReconcilers"
    """Another reconciler, with a lock of its own, acts on the same nodes. It is about no single node."""

    SETTINGS_REJECTED = "SettingsRejected"
    """The newest settings can't be used, so passes go on with the last good ones."""

    PERSON = "Person"
    """A person held, stopped, deferred, approved or began a drain, ended a hold, or changed the settings."""

    STARTED = "Started"
    """The node is cordoned, and its drain starts."""

    BLOCKED = "Blocked"
    """Pods do not leave the node."""

    DRAINED = "Drained"
    """All pods that the drain evicts are gone."""

    DEADLINE_PASSED = "DeadlinePassed"
    """The latest start has passed, and no drain has begun."""

    MISSED = "Missed"
    """The platform started while pods were on the node."""

    FAILED = "Failed"
    """An action failed."""

    DONE = "Done"
    """The case has ended."""

    SUMMARY = "Summary"
    """How many nodes were drained before the platform struck, once a week."""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return _SEVERITIES.get(self, Severity.INFO)

    @property
    def bad(self) -> bool:
        """Whether a person probably has to do something."""
        return self.severity is not Severity.INFO

    @property
    def lasts(self) -> bool:
        """Whether it is about a state that ends, and not about something that happened."""
        return self in _STATES


class Severity(StrEnum):
    """How bad a topic is, the least first. The values are those of PagerDuty."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    def exceeds(self, other: Severity) -> bool:
        """Whether it is worse than another one."""
        order = tuple(Severity)
        return order.index(self) > order.index(other)


_SEVERITIES = {
    Topic.APPROVAL_NEEDED: Severity.WARNING,
    Topic.HELD: Severity.WARNING,
    Topic.BLOCKED: Severity.WARNING,
    Topic.DEADLINE_PASSED: Severity.WARNING,
    Topic.WILL_BE_MISSED: Severity.ERROR,
    Topic.UNGUARDED: Severity.ERROR,
    Topic.TWO_RECONCILERS: Severity.ERROR,
    Topic.SETTINGS_REJECTED: Severity.ERROR,
    Topic.FAILED: Severity.ERROR,
    Topic.MISSED: Severity.CRITICAL,
}


_STATES = frozenset(
    {
        Topic.APPROVAL_NEEDED,
        Topic.HELD,
        Topic.WILL_BE_MISSED,
        Topic.UNGUARDED,
        Topic.TWO_RECONCILERS,
        Topic.SETTINGS_REJECTED,
        Topic.BLOCKED,
        Topic.DEADLINE_PASSED,
    }
)


USUAL = frozenset(
    {
        Topic.APPROVAL_NEEDED,
        Topic.WILL_BE_MISSED,
        Topic.UNGUARDED,
        Topic.TWO_RECONCILERS,
        Topic.SETTINGS_REJECTED,
        Topic.PERSON,
        Topic.BLOCKED,
        Topic.MISSED,
        Topic.FAILED,
        Topic.SUMMARY,
    }
)
"""What people get who choose no topics: what they may have to act on, what others did, one number a week."""


class OfNamespace(Struct, frozen=True):
    """What a message says of one namespace: a text that only its owners read, and how many pods that is."""

    namespace: str
    text: str
    pods: int = 0


class Message(Struct, frozen=True):
    """One message about one node, or about the whole cluster: then `node` is empty.

    `case` identifies the case, `key` the message in it: two messages with the same both are the same one.
    `kind` is the most disruptive event of the case, or its condition. `at` is when a pass saw it (UTC).
    `text` has its moments in RFC 3339 and UTC. `repeats` is whether it was sent before and still holds.
    `namespaces` are those of the pods on the node, as far as they were needed before. `anyone` is what every
    owner of pods on the node may read, so it names nothing of a namespace. `named` is what only the owners of
    a namespace may read.

    `cause` is what it comes from, the same text for all nodes of which it is true; empty if only this case
    has it. `origin` identifies the cluster where it has no name. `by` is when the platform may start, or
    until when a person has to act (UTC). `remedy` says who can change it, with a command. `took` is
    how long a drain took, None for anything else. `over`: what it says is true no more; only who has an open
    alert about it gets that.
    """

    topic: Topic
    node: str
    case: str
    key: str
    at: UnixMoment
    text: str
    kind: str = ""
    pool: str = ""
    zone: str = ""
    repeats: bool = False
    namespaces: Names = ()
    anyone: str = ""
    named: tuple[OfNamespace, ...] = ()
    cause: str = ""
    origin: str = ""
    by: UnixMoment | None = None
    remedy: str = ""
    took: timedelta | None = None
    over: bool = False

    def for_owners(self, namespaces: Collection[str]) -> Message:
        """Return the message for the owners of these namespaces: of others it has only a number of pods."""
        own = [one.text for one in self.named if one.namespace in namespaces]
        others = sum(one.pods for one in self.named if one.namespace not in namespaces)
        rest = "; ".join((*own, *([f"{count_of(others, 'pod')} of others"] if others else ())))
        text = ": ".join(part for part in (self.anyone or self.topic.value, rest) if part)
        return replace(self, text=text, namespaces=(), anyone=text, named=(), cause="", remedy="")

    @property
    def about(self) -> str:
        """What it is about, in words."""
        return f"node {self.node}" if self.node else "the cluster"

    @property
    def alert(self) -> str:
        """What identifies the alert about it: its cause, or its case."""
        return self.cause or self.case

    @property
    def id(self) -> str:
        """Return an id that is the same for the same message in every process."""
        identity = "\0".join((self.case, self.key))
        return hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:24]


def mark_of(text: str) -> int:
    """Return a number that stands for a text, such as in the key of a message."""
    return crc32(text.encode("utf-8", "replace"))
