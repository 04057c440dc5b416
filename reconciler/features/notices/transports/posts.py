"""Transports that differ only in what they post: Teams, PagerDuty and webhooks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from reconciler.calendar.values import in_zone
from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.messages import Message, Topic
from reconciler.features.notices.settings import PagerDuty, Teams, Webhook
from reconciler.features.notices.transports.sending import Http, Post, resolved
from reconciler.model.moments import to_text
from reconciler.report import safe


class Posting(Struct, frozen=True):
    """Posts the requests that `posts` makes of a delivery."""

    posts: Callable[[Delivery], Iterable[Post]]
    http: Http

    def send(self, delivery: Delivery) -> str:
        """See the port. After a failure all are sent again."""
        for post in self.posts(delivery):
            self.http.send(post)
        return ""


# Microsoft Teams: an adaptive card to a workflow that posts it to a chat or a channel.

_LARGEST = 24_000
"""Bytes of all lines, as they are sent. Teams refuses a message above 28 KB."""

_LONGEST = 1_800
"""Characters of one line. A character takes up to 12 bytes, so one line always has room."""


def teams(settings: Teams, delivery: Delivery) -> Iterator[Post]:
    """Yield the request with the card of a delivery."""
    yield Post(resolved(settings.webhook), card(delivery))


def card(delivery: Delivery) -> dict[str, Any]:
    """Return the message with one adaptive card. A text block reads Markdown, so that is escaped."""
    title = {"type": "TextBlock", "text": safe.markdown(delivery.title), "weight": "Bolder", "wrap": True}
    blocks, left = [] if delivery.body else [title], _LARGEST
    lines = delivery.body.split("\n") if delivery.body else delivery.lines
    for number, line in enumerate(lines):
        text = safe.markdown(line)
        cut = f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text
        block = {"type": "TextBlock", "text": cut, "wrap": True, "spacing": "Small"}
        left -= len(json.dumps(block))
        if left < 0:
            more = f"… and {len(lines) - number} more lines"
            blocks.append({"type": "TextBlock", "text": more, "wrap": True})
            break
        blocks.append(block)
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "contentUrl": None, "content": content}]}


# PagerDuty, Events API v2: an alert for each case with a problem, resolved when the case ends. A miss has one
# of its own, which only a person resolves: its case often ends seconds later.

_LONGEST_SUMMARY = 1024
_LONGEST_KEY = 255

_SEVERITIES = {
    Topic.MISSED: "critical",
    Topic.WILL_BE_MISSED: "error",
    Topic.UNGUARDED: "error",
    Topic.TWO_RECONCILERS: "error",
    Topic.FAILED: "error",
}


def pagerduty(settings: PagerDuty, delivery: Delivery) -> Iterator[Post]:
    """Yield a request for each message: PagerDuty groups them by case itself.

    One with a known key opens no second alert.
    """
    key, url = resolved(settings.routing_key), f"{resolved(settings.url)}/v2/enqueue"
    for message in delivery.messages:
        yield Post(url, event(message, delivery, key), secrets=(key,))


def event(message: Message, delivery: Delivery, key: str) -> dict[str, Any]:
    """Return the event: the end of a case, or of the forecast of its miss, resolves its alert.

    Anything else triggers the alert.
    """
    cluster, missed = delivery.cluster, " Missed" if message.topic is Topic.MISSED else ""
    common = {"routing_key": key, "dedup_key": f"{message.case[: _LONGEST_KEY - len(missed)]}{missed}"}
    if message.topic in (Topic.DONE, Topic.NO_LONGER_MISSED):
        return {**common, "event_action": "resolve"}
    summary = safe.line(f"{message.about}: {message.topic}: {in_zone(message.text, delivery.zone)}")
    severity = _SEVERITIES.get(message.topic, "warning" if message.topic.bad else "info")
    payload = {
        "summary": f"[{cluster}] {summary}"[:_LONGEST_SUMMARY] if cluster else summary[:_LONGEST_SUMMARY],
        "source": message.node or cluster or "node-maintenance",
        "severity": severity,
        "timestamp": to_text(message.at),
        "component": message.pool or ("node" if message.node else "reconciler"),
        "group": cluster or "node-maintenance",
        "class": message.topic.value,
        "custom_details": {"kind": message.kind, "pool": message.pool, "zone": message.zone},
    }
    return {**common, "event_action": "trigger", "payload": payload}


# Any HTTP server: CloudEvents 1.0, one as a structured message, several as a batch.

TYPE = "dev.node-maintenance.notice"
ONE = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
SOURCE = "/node-maintenance-reconciler"


def webhook(settings: Webhook, delivery: Delivery) -> Iterator[Post]:
    """Yield the request with the CloudEvents of a delivery."""
    headers = {name: resolved(value) for name, value in settings.headers.items()}
    events = [cloud_event(message, delivery.cluster) for message in delivery.messages]
    body, kind = (events[0], ONE) if len(events) == 1 else (events, BATCH)
    yield Post(resolved(settings.url), body, headers, f"{kind}; charset=utf-8")


def cloud_event(message: Message, cluster: str) -> dict[str, Any]:
    """Return a message as a CloudEvent. Its `id` is the same whenever the message is sent again."""
    return {
        "specversion": "1.0",
        "id": message.id + ("r" if message.repeats else ""),
        "source": f"{SOURCE}/{cluster}" if cluster else SOURCE,
        "type": f"{TYPE}.{message.topic.value}",
        # An empty subject is not allowed.
        **({"subject": message.node} if message.node else {}),
        "time": to_text(message.at),
        "datacontenttype": "application/json",
        "data": {
            "topic": message.topic.value,
            "node": message.node,
            "case": message.case,
            "kind": message.kind,
            "pool": message.pool,
            "zone": message.zone,
            "cluster": cluster,
            "text": message.text,
            "repeats": message.repeats,
        },
    }
