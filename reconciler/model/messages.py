"""Messages about nodes in the words of whoever wrote the settings, and where they go."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from msgspec import Meta, Struct

from reconciler.model.content import Secret
from reconciler.model.values import UnixMoment

LONGEST = 2000
"""Characters of a text that a template makes. The rest is left out."""


class ProfileMessage(Struct, frozen=True):
    """A message about one node, as the template of the instance made it.

    `id` is the same for the same message in every process. `at` is when a pass found that it is due (UTC).
    `title` is the first message of a thread, empty for an instance without threads.
    """

    id: str
    instance: str
    node: str
    at: UnixMoment
    text: Annotated[str, Meta(max_length=LONGEST)]
    title: str = ""


class MailTo(Struct, frozen=True):
    """Mail by the SMTP server `host`, to these addresses. With `auth`, the login has the three secrets."""

    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    subject: str
    auth: bool
    identity: Secret
    user: Secret
    password: Secret


class SlackWebhook(Struct, frozen=True):
    """A channel of Slack, by the URL of an incoming webhook."""

    url: Secret
    channel: str


class SlackThread(Struct, frozen=True):
    """Threads in a channel of the Slack server `url`: a Lease keeps the newest one, for a `period`."""

    token: Secret
    channel: str
    lease_namespace: str
    lease_name: str
    period: timedelta
    url: str


class MessageReceiver(Struct, frozen=True):
    """Where the messages of the instance `name` go; `type` is what the settings call this kind."""

    name: str
    type: str
    to: MailTo | SlackWebhook | SlackThread
