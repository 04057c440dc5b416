"""Reads Kubernetes Events about the pods of a namespace and their owners."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from reconciler.kubernetes.connection import Connection, core
from reconciler.kubernetes.wire.formats import json_format
from reconciler.kubernetes.wire.lists import list_all
from reconciler.model import limits
from reconciler.model.explanation import SeenEvent
from reconciler.model.moments import from_text

COMPONENT = "node-maintenance-reconciler"
"""The `source` of the Events that this program writes."""


class _About(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Source(msgspec.Struct):
    component: str = ""


class _Event(msgspec.Struct, rename="camel"):
    """core/v1 Event. Writers of the newer API set eventTime alone."""

    involved_object: _About = msgspec.field(default_factory=_About)
    reason: str = ""
    message: str = ""
    source: _Source = msgspec.field(default_factory=_Source)
    reporting_component: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None


_UNDATED = datetime.min.replace(tzinfo=UTC)


def events_of_pod(connection: Connection, namespace: str, pod: str) -> tuple[SeenEvent, ...]:
    """Return the Events about a pod, and those of this program about its owner, the newest first.

    The API server keeps Events for an hour by default. Raises ClusterError.
    """
    path, form = core(namespace) / "events", json_format(_Event, _seen)
    about_pod = list_all(connection, path, form, fields=f"involvedObject.kind=Pod,involvedObject.name={pod}")
    ours = list_all(connection, path, form, fields=f"source={COMPONENT}")
    events = {*about_pod.items, *(event for event in ours.items if event.owns(pod))}
    return tuple(sorted(events, key=lambda event: event.at or _UNDATED, reverse=True))


def _seen(event: _Event) -> SeenEvent:
    try:
        at = from_text(event.last_timestamp or event.event_time or "")
    except ValueError:
        at = None
    return SeenEvent(
        at,
        limits.text(event.reason, limits.NAME),
        limits.text(event.message, limits.TEXT),
        limits.text(event.involved_object.kind, limits.NAME),
        limits.text(event.involved_object.name, limits.NAME),
        COMPONENT in (event.source.component, event.reporting_component),
    )
