"""Slack: an incoming webhook, or chat.postMessage with a bot's token, which can continue a thread.

The notifications of workflows have both as maintenance-controller has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.settings import Slack
from reconciler.features.notices.transports.sending import Http, NotSent, Post, masked, resolved
from reconciler.features.notices.transports.table import Tools
from reconciler.model.content import Secret
from reconciler.model.errors import ClusterError
from reconciler.model.leases import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.limits import count_of, without_markup
from reconciler.model.moments import shifted
from reconciler.report.commands import in_parts

LONGEST = 12_000
"""Characters of a message. Slack recommends 4,000, and cuts off what is above 40,000 without a word."""

_HEADER = 150
"""Characters of a headline."""

_SECTION = 3000
"""Characters of a block."""

_BLOCKS = 50
"""Blocks of a message."""

_SIGNS = re.compile(r"([*_~`])")
"""What marks text in Slack."""

_GONE = frozenset({"thread_not_found", "message_not_found"})
_PASSING = frozenset({"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable"})


def shortened(text: str) -> str:
    """Return a text of LONGEST characters at most, which says how many lines are missing."""
    if len(text) <= LONGEST:
        return text
    whole, _, _ = text[: LONGEST - 50].rpartition("\n")
    if not whole:
        return f"{text[: LONGEST - 1]}…"
    return f"{whole}\n… and {count_of(text.count(chr(10)) - whole.count(chr(10)), 'more line')}"


def blocks_of(delivery: Delivery) -> list[dict[str, Any]]:
    """Return the blocks of a message: what its text says, with commands as such and links."""
    header = {"type": "plain_text", "text": delivery.title[:_HEADER], "emoji": False}
    blocks: list[dict[str, Any]] = [{"type": "header", "text": header}]
    room, lines = _BLOCKS - 3, [line for line in delivery.lines if line]
    texts = [_marked(line) for line in lines[:room]]
    texts += [f"… and {len(lines) - room} more"] if len(lines) > room else []
    blocks += [{"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in texts]
    if delivery.links:
        links = " · ".join(f"<{without_markup(url)}|{name}>" for name, url in delivery.links)
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": links[:_SECTION]}]})
    return blocks


def _marked(line: str) -> str:
    """Return a line without markup but that of ours: commands behind the arrow are code."""
    if not line.startswith("→ "):
        return _plain(line)[:_SECTION]
    parts = in_parts(line)
    shown = (
        f"`{without_markup(part.text)}`" if part.command or part.code else _plain(part.text) for part in parts
    )
    return "".join(shown)[:_SECTION]


def _plain(text: str) -> str:
    """Return a text of others without markup: a character without width behind a sign makes it none."""
    return _SIGNS.sub("\\1\u200b", without_markup(text))


class SlackTransport:
    """Sends text to Slack."""

    def __init__(self, settings: Slack, tools: Tools) -> None:
        """Send as these settings say."""
        self._settings, self._http = settings, tools.http

    def send(self, delivery: Delivery) -> str:
        """Post the message, and return the thread that it began or continued."""
        message: dict[str, Any] = {"text": shortened(without_markup(delivery.text))}
        if not delivery.body:
            message["blocks"] = blocks_of(delivery)
        if self._settings.webhook is not None:
            return _to_webhook(self._http, resolved(self._settings.webhook), message)
        return self._post(message, delivery.thread, delivery.recipient)

    def _post(self, message: dict[str, Any], thread: str, channel: str = "") -> str:
        settings = self._settings
        if settings.token is None:
            raise NotSent("neither a webhook nor a token is set", refused=True)
        token = resolved(settings.token)
        body: dict[str, Any] = {"channel": channel or settings.channel, **message}
        if thread and settings.thread:
            body["thread_ts"] = thread
        try:
            began = post_message(self._http, resolved(settings.url), token, body)
        except ThreadGone:
            # Somebody deleted the thread.
            return self._post(message, "", channel)
        return (thread or began) if settings.thread else ""


def _to_webhook(http: Http, url: str, body: dict[str, Any]) -> str:
    if http.send(Post(url, body)).body.strip() != b"ok":
        raise NotSent("Slack did not answer ok", refused=True)
    return ""


class ThreadGone(NotSent):
    """The thread of a message does not exist any more."""


def post_message(http: Http, url: str, token: str, body: dict[str, Any]) -> str:
    """Post a message with a bot's token, and return its `ts`, which names its thread.

    Raises ThreadGone, and NotSent for any other failure.
    """
    post = Post(
        f"{url}/api/chat.postMessage",
        {**body, "unfurl_links": False},
        {"Authorization": f"Bearer {token}"},
        "application/json; charset=utf-8",
    )
    answer = http.send(post).document()
    if isinstance(answer, dict) and answer.get("ok") is True:
        began = answer.get("ts")
        return began if isinstance(began, str) else ""
    why = str(answer.get("error", "no reason"))[:100] if isinstance(answer, dict) else "no reason"
    if body.get("thread_ts") and why in _GONE:
        raise ThreadGone(f"Slack refused: {why}", refused=True)
    raise NotSent(f"Slack refused: {masked(why, token)}", refused=why not in _PASSING)


class SlackWebhook(Struct, frozen=True):
    """A channel of Slack, by the URL of an incoming webhook."""

    url: Secret
    channel: str


class WorkflowSlack:
    """Posts each message of a workflow to an incoming webhook."""

    def __init__(self, to: Mapping[str, Any], tools: Tools) -> None:
        """Send to this place, see `SlackWebhook`."""
        self._settings, self._http = SlackWebhook(**to), tools.http

    def send(self, delivery: Delivery) -> str:
        """Post the text. The template may have markup of Slack; the values that it inserts have none."""
        body = {"text": delivery.body[:LONGEST], "channel": self._settings.channel}
        return _to_webhook(self._http, self._settings.url.text, body)


class SlackThread(Struct, frozen=True):
    """Threads in a channel of the Slack server `url`: a Lease keeps the newest one, for a `period`."""

    token: Secret
    channel: str
    lease: LeaseRef
    period: timedelta
    url: str


_AHEAD = timedelta(minutes=5)


class WorkflowThread:
    """Posts messages into a thread, and begins a new one after each period.

    The holder of the Lease is the thread, as maintenance-controller writes it.
    """

    def __init__(self, to: Mapping[str, Any], tools: Tools) -> None:
        """Send to this place, see `SlackThread`."""
        self._settings, self._tools = SlackThread(**to), tools
        self._ref = self._settings.lease
        self._begun: tuple[str, datetime] | None = None

    def send(self, delivery: Delivery) -> str:
        """Post the message into the thread of the period, or into a new one."""
        seen, now = self._seen(), self._tools.now()
        if (
            seen is not None
            and seen.holder
            and seen.renewed is not None
            # A Lease of the future would keep its thread for ever.
            and seen.renewed <= shifted(now, _AHEAD)
            and now <= shifted(seen.renewed, seen.duration)
        ):
            thread = seen.holder
        else:
            # The Lease has the new thread before anything is posted there.
            thread = self._begin(delivery, seen)
        try:
            self._post(delivery.body, thread)
        except ThreadGone:
            # Somebody deleted it.
            self._begun = None
            self._post(delivery.body, self._begin(delivery, self._seen()))
        return ""

    def _begin(self, delivery: Delivery, seen: LeaseSeen | None) -> str:
        now = self._tools.now()
        if self._begun is None or not self._begun[1] <= now < shifted(self._begun[1], self._settings.period):
            thread = self._post(delivery.title, "")
            if not thread:
                raise NotSent("Slack did not name the message that it posted", refused=True)
            self._begun = (thread, now)
        # If this fails, the next try has the thread, and posts no second title.
        thread, _ = self._begun
        try:
            self._tools.threads.take_lease(LeaseTake(self._ref, thread, now, self._settings.period, seen))
        except ClusterError as error:
            raise NotSent(f"the Lease {self._ref} can't be written: {error.because}") from error
        self._begun = None
        return thread

    def _seen(self) -> LeaseSeen | None:
        try:
            return self._tools.threads.lease(self._ref)
        except ClusterError as error:
            raise NotSent(f"the Lease {self._ref} can't be read: {error.because}") from error

    def _post(self, text: str, thread: str) -> str:
        settings = self._settings
        body: dict[str, Any] = {"channel": settings.channel, "text": without_markup(text)[:LONGEST]}
        if thread:
            body["thread_ts"] = thread
        return post_message(self._tools.http, settings.url, settings.token.text, body)
