"""Slack: an incoming webhook, or chat.postMessage with a bot's token, which can continue a thread."""

from __future__ import annotations

from typing import Any

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.settings import Slack
from reconciler.features.notices.transports.http import Http, Post
from reconciler.features.notices.transports.transport import NotSent, masked, resolved
from reconciler.model.limits import without_slack_markup

LONGEST = 12_000
"""Characters of a message. Slack recommends 4,000, and cuts off what is above 40,000 without a word."""

_GONE = frozenset({"thread_not_found", "message_not_found"})
_PASSING = frozenset({"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable"})


def shortened(text: str) -> str:
    """Return a text of LONGEST characters at most, which says how many lines are missing."""
    if len(text) <= LONGEST:
        return text
    whole, _, _ = text[: LONGEST - 50].rpartition("\n")
    if not whole:
        return f"{text[: LONGEST - 1]}…"
    return f"{whole}\n… and {text.count(chr(10)) - whole.count(chr(10))} more lines"


class SlackTransport:
    """Sends text to Slack."""

    def __init__(self, settings: Slack, http: Http) -> None:
        """Send as these settings say."""
        self._settings, self._http = settings, http

    def send(self, delivery: Delivery) -> str:
        """See the port."""
        text = shortened(without_slack_markup(delivery.text))
        if self._settings.webhook is not None:
            url = resolved(self._settings.webhook)
            reply = self._http.send(Post(url, {"text": text}))
            if reply.body.strip() != b"ok":
                raise NotSent("Slack did not answer ok", refused=True)
            return ""
        return self._post(text, delivery.thread, delivery.recipient)

    def _post(self, text: str, thread: str, channel: str = "") -> str:
        settings = self._settings
        if settings.token is None:
            raise NotSent("neither a webhook nor a token is set", refused=True)
        token = resolved(settings.token)
        body: dict[str, Any] = {"channel": channel or settings.channel, "text": text}
        if thread and settings.thread:
            body["thread_ts"] = thread
        try:
            began = post_message(self._http, resolved(settings.url), token, body)
        except ThreadGone:
            # Somebody deleted the thread.
            return self._post(text, "", channel)
        return (thread or began) if settings.thread else ""


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
