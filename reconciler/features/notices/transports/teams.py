"""Microsoft Teams: an adaptive card to a workflow that posts it to a chat or a channel."""

from __future__ import annotations

import json
from typing import Any

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.settings import Teams
from reconciler.features.notices.transports.http import Http, Post
from reconciler.features.notices.transports.transport import resolved
from reconciler.report import safe

_LARGEST = 24_000
"""Bytes of all lines, as they are sent. Teams refuses a message above 28 KB."""

_LONGEST = 1_800
"""Characters of one line. A character takes up to 12 bytes, so one line always has room."""


class TeamsTransport:
    """Sends cards to Teams."""

    def __init__(self, settings: Teams, http: Http) -> None:
        """Send as these settings say."""
        self._settings, self._http = settings, http

    def send(self, delivery: Delivery) -> str:
        """See the port."""
        self._http.send(Post(resolved(self._settings.webhook), card(delivery)))
        return ""


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
