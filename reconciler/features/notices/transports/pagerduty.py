"""PagerDuty, Events API v2: an alert for each case with a problem, resolved when the case ends."""

from __future__ import annotations

from typing import Any

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.settings import PagerDuty
from reconciler.features.notices.transports.http import Http, Post
from reconciler.features.notices.transports.transport import resolved
from reconciler.model.moments import to_text
from reconciler.model.notices import Message, Topic
from reconciler.report import safe

_LONGEST_SUMMARY = 1024
_LONGEST_KEY = 255

_SEVERITIES = {Topic.MISSED: "critical", Topic.WILL_BE_MISSED: "error", Topic.FAILED: "error"}


class PagerDutyTransport:
    """Sends one event for each message: PagerDuty groups them by case itself."""

    def __init__(self, settings: PagerDuty, http: Http) -> None:
        """Send as these settings say."""
        self._settings, self._http = settings, http

    def send(self, delivery: Delivery) -> str:
        """See the port. After a failure all are sent again: one with a known key opens no second alert."""
        key = resolved(self._settings.routing_key)
        url = f"{resolved(self._settings.url)}/v2/enqueue"
        for message in delivery.messages:
            self._http.send(Post(url, event(message, delivery.cluster, key), secrets=(key,)))
        return ""


def event(message: Message, cluster: str, key: str) -> dict[str, Any]:
    """Return the event: the end of a case, or of the forecast of its miss, resolves its alert.

    Anything else triggers the alert.
    """
    common = {"routing_key": key, "dedup_key": message.case[:_LONGEST_KEY]}
    if message.topic in (Topic.DONE, Topic.NO_LONGER_MISSED):
        return {**common, "event_action": "resolve"}
    summary = safe.line(f"node {message.node}: {message.topic}: {message.text}")
    severity = _SEVERITIES.get(message.topic, "warning" if message.topic.bad else "info")
    payload = {
        "summary": f"[{cluster}] {summary}"[:_LONGEST_SUMMARY] if cluster else summary[:_LONGEST_SUMMARY],
        "source": message.node,
        "severity": severity,
        "timestamp": to_text(message.at),
        "component": message.pool or "node",
        "group": cluster or "node-maintenance",
        "class": message.topic.value,
        "custom_details": {"kind": message.kind, "pool": message.pool, "zone": message.zone},
    }
    return {**common, "event_action": "trigger", "payload": payload}
