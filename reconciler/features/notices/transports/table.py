"""Every transport. To add one, add its section of the settings, what sends it here, and its line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pkgutil import resolve_name
from typing import Protocol

from msgspec import Struct

from reconciler.features.notices.settings import Notify
from reconciler.features.notices.transports.posts import Posting
from reconciler.features.notices.transports.sending import Http, Transport
from reconciler.model.leases import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.messages import MessageReceiver

TRANSPORTS: Mapping[str, str] = {
    "slack": "slack:SlackTransport",
    "teams": "posts:teams",
    "mail": "mail:MailTransport",
    "pagerduty": "posts:pagerduty",
    "webhook": "posts:webhook",
    "apprise": "apprise:AppriseTransport",
}
"""The transports of `notify`: a class, or a function that makes what is posted.

An entry with `alertmanager` sends no messages: see `Silencer`.
"""

INSTANCES: Mapping[str, str] = {
    "mail": "mail:WorkflowMail",
    "slack": "slack:WorkflowSlack",
    "slackThread": "slack:WorkflowThread",
}
"""Those of the notifications of workflows, by their type. The value beside each class says what `to` has."""


class Threads(Protocol):
    """Reads and writes the Leases that keep threads."""

    def lease(self, ref: LeaseRef) -> LeaseSeen | None:
        """Return a Lease, None if it does not exist; raises ClusterError."""

    def take_lease(self, take: LeaseTake) -> None:
        """Write it as it was read, or create it; raises LockLost and ClusterError."""


class Tools(Struct, frozen=True):
    """What transports need; `now` is the clock (aware)."""

    http: Http
    threads: Threads
    now: Callable[[], datetime]


def transport_of(receiver: Notify | MessageReceiver, tools: Tools) -> Transport:
    """Return the transport of an entry of `notify`, or of a notification of workflows."""
    if isinstance(receiver, MessageReceiver):
        name, settings = INSTANCES[receiver.type], receiver.to
    else:
        name, settings = TRANSPORTS[receiver.transport], getattr(receiver, receiver.transport)
    # Few clusters need all of them.
    made = resolve_name(f"{__package__}.{name}")
    transport: Transport = (
        made(settings, tools) if isinstance(made, type) else Posting(partial(made, settings), tools.http)
    )
    return transport
