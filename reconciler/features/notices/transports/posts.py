"""Transports that differ only in what they post: Teams, PagerDuty and webhooks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from reconciler.calendar.values import with_time_left
from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.messages import Message
from reconciler.features.notices.settings import PagerDuty, Teams, Webhook
from reconciler.features.notices.transports.sending import Http, Post, resolved
from reconciler.features.notices.wording import in_local_time, part_of, runbook_of
from reconciler.model import limits
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.report import safe
from reconciler.report.commands import commands_in


class Posting(Struct, frozen=True):
    """Posts the requests that `posts` makes of a delivery."""

    posts: Callable[[Delivery], Iterable[Post]]
    http: Http

    def send(self, delivery: Delivery) -> str:
        """Post the requests of the delivery. After a failure all are sent again."""
        for post in self.posts(delivery):
            self.http.send(post)
        return ""


# Microsoft Teams: an adaptive card to a workflow that posts it to a chat or a channel.

_LARGEST = 24_000
"""Bytes of all lines, as they are sent. Teams refuses a message above 28 KB."""

_LONGEST = 1_800
"""Characters of one line. A character takes up to 12 bytes, so one line always has room."""


_BUTTONS = 6
"""Buttons of one card that Teams shows."""


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
            more = f"… and {count_of(len(lines) - number, 'more line')}"
            blocks.append({"type": "TextBlock", "text": more, "wrap": True})
            break
        blocks.append(block)
    content = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
        "actions": [
            {"type": "Action.OpenUrl", "title": name, "url": url}
            for name, url in delivery.links[:_BUTTONS]
            if not delivery.body
        ],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "contentUrl": None, "content": content}]}


# PagerDuty, Events API v2: an alert for each cause, resolved when the last case with it has ended. Misses
# have one that only a person resolves: a case often ends seconds later.

_LONGEST_SUMMARY = 1024
_LONGEST_KEY = 255
_NAMED = 100

CLIENT = "node-maintenance-reconciler"


def pagerduty(settings: PagerDuty, delivery: Delivery) -> Iterator[Post]:
    """Yield a request for each alert that is opened or closed; one with a known key opens no second alert."""
    key, url = resolved(settings.routing_key), f"{resolved(settings.url)}/v2/enqueue"
    # The messages by their alert, in their order: what closes one is not mixed with what opens it.
    steps: list[list[Message]] = []
    last: dict[str, list[Message]] = {}
    for message in delivery.messages:
        step = last.get(message.alert)
        if step is None or step[0].over or message.over or step[0].topic is not message.topic:
            step = last[message.alert] = []
            steps.append(step)
        step.append(message)
    for step in steps:
        yield Post(url, event(step, delivery, key), secrets=(key,))


def event(alike: Sequence[Message], delivery: Delivery, key: str) -> dict[str, Any]:
    """Return the event about messages with one topic and cause: it triggers their alert, or resolves it."""
    first, cluster = alike[0], delivery.cluster
    # Clusters without a name can share a service of PagerDuty.
    dedup = f"{cluster or first.origin}: {first.cause}" if first.cause else first.case
    common = {"routing_key": key, "dedup_key": dedup[:_LONGEST_KEY]}
    if first.over:
        return {**common, "event_action": "resolve"}
    part = part_of(alike, delivery.now)
    said = f"{part.line} → {part.remedy}" if part.remedy else part.line
    summary = _local(f"[{safe.line(cluster)}] {said}" if cluster else said, delivery)
    soonest = part.first
    details = {
        "nodes": ", ".join(part.names[:_NAMED]),
        "count": len(part.names),
        "kind": soonest.kind,
        "pool": soonest.pool,
        "zone": soonest.zone,
        "by": _local(_with_time_left(to_text(soonest.by), delivery), delivery) if soonest.by else "",
        "ask": part.remedy,
        "command": "\n".join(commands_in(part.remedy)),
    }
    links = [{"href": delivery.page, "text": "Page"}] if delivery.page else []
    links += [{"href": part.runbook, "text": "Runbook"}] if part.runbook else []
    return {
        **common,
        "event_action": "trigger",
        "client": CLIENT,
        **({"client_url": delivery.page} if delivery.page else {}),
        **({"links": links} if links else {}),
        "payload": {
            "summary": limits.text(summary, _LONGEST_SUMMARY),
            "source": soonest.node or cluster or "node-maintenance",
            "severity": soonest.topic.severity.value,
            "timestamp": to_text(soonest.at),
            "component": soonest.pool or ("node" if soonest.node else "reconciler"),
            "group": cluster or "node-maintenance",
            "class": soonest.topic.value,
            "custom_details": {name: value for name, value in details.items() if value},
        },
    }


def _local(text: str, delivery: Delivery) -> str:
    return in_local_time(text, delivery.zone, delivery.now)


def _with_time_left(text: str, delivery: Delivery) -> str:
    return with_time_left(text, delivery.now) if delivery.now is not None else text


# Any HTTP server: CloudEvents 1.0, one as a structured message, several as a batch.

TYPE = "dev.node-maintenance.notice"
ONE = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
SOURCE = "/node-maintenance-reconciler"


def webhook(settings: Webhook, delivery: Delivery) -> Iterator[Post]:
    """Yield the request with the CloudEvents of a delivery."""
    headers = {name: resolved(value) for name, value in settings.headers.items()}
    events = [cloud_event(message, delivery.cluster, delivery.page) for message in delivery.messages]
    body, kind = (events[0], ONE) if len(events) == 1 else (events, BATCH)
    yield Post(resolved(settings.url), body, headers, f"{kind}; charset=utf-8")


def cloud_event(message: Message, cluster: str, page: str = "") -> dict[str, Any]:
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
            "cause": message.cause,
            "by": to_text(message.by) if message.by is not None else None,
            "remedy": message.remedy,
            "links": [link for link in (page, runbook_of(message)) if link],
        },
    }
