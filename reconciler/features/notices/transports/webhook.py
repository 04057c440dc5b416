"""Any HTTP server: CloudEvents 1.0, one as a structured message, several as a batch."""

from __future__ import annotations

from typing import Any

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.settings import Webhook
from reconciler.features.notices.transports.http import Http, Post
from reconciler.features.notices.transports.transport import resolved
from reconciler.model.moments import to_text
from reconciler.model.notices import Message

TYPE = "dev.node-maintenance.notice"
ONE = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
SOURCE = "/node-maintenance-reconciler"


class WebhookTransport:
    """Posts CloudEvents."""

    def __init__(self, settings: Webhook, http: Http) -> None:
        """Send as these settings say."""
        self._settings, self._http = settings, http

    def send(self, delivery: Delivery) -> str:
        """See the port."""
        url = resolved(self._settings.url)
        headers = {name: resolved(value) for name, value in self._settings.headers.items()}
        events = [cloud_event(one, delivery.cluster) for one in delivery.messages]
        body, kind = (events[0], ONE) if len(events) == 1 else (events, BATCH)
        self._http.send(Post(url, body, headers, f"{kind}; charset=utf-8"))
        return ""


def cloud_event(message: Message, cluster: str) -> dict[str, Any]:
    """Return a message as a CloudEvent. Its `id` is the same whenever the message is sent again."""
    return {
        "specversion": "1.0",
        "id": message.id + ("r" if message.repeats else ""),
        "source": f"{SOURCE}/{cluster}" if cluster else SOURCE,
        "type": f"{TYPE}.{message.topic.value}",
        "subject": message.node,
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
