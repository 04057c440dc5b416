"""Events are read by people: their moments are in the zone of the settings, named once."""

from __future__ import annotations

import json
from pathlib import Path

from reconciler.clients.kubernetes.connection import Connection
from reconciler.model.notification import Notification
from reconciler.model.plan import Notice
from reconciler.notifiers.registry import notifiers
from tests.support import builders
from tests.support.stub import Answer, Stub


def test_the_moments_of_an_event_are_in_the_settings_zone(tmp_path: Path) -> None:
    server = Stub(lambda _: Answer(status=201))
    connection = Connection(str(server.write_kubeconfig(tmp_path / "kubeconfig")))
    try:
        ours = notifiers(connection, builders.settings("timeZone: Europe/Berlin"), lambda: None)
        message = "drained from 2026-11-21T22:00:00Z to 2026-11-21T22:30:00Z"
        ours.notify(Notification("a", "uid-a", Notice("MaintenanceDone", message)))
        body = json.loads(server.asked[0].body)
    finally:
        connection.close()
        server.close()

    begun, ended = "Sat 2026-11-21 23:00 CET (Europe/Berlin)", "Sat 2026-11-21 23:30"
    assert body["message"] == f"drained from {begun} to {ended}"
    assert body["firstTimestamp"].endswith("Z")
