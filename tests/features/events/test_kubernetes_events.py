"""Events are read by people, and what the API server could not take now is reported as such."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from jobs.runtime.environment import Target
from jobs.runtime.process import Ports
from reconciler.features.events.kubernetes_events import KubernetesEvents
from reconciler.features.events.process import PROCESS
from reconciler.model.errors import LockLost
from reconciler.model.plan import Notice
from reconciler.model.ports import Notification
from tests.support import builders
from tests.support.stub import Answer, StubMaker
from tests.support.stub import status as answer


def test_the_moments_of_an_event_are_in_the_settings_zone(stub: StubMaker) -> None:
    server, connection = stub(lambda _: Answer(status=201))
    assert PROCESS.ports is not None
    ports = PROCESS.ports(Ports(connection, Target(), lambda: None))
    ours = ports(builders.settings("timeZone: Europe/Berlin")).notifier
    assert ours is not None
    message = "drained from 2026-11-21T22:00:00Z to 2026-11-21T22:30:00Z"
    ours.notify(Notification("a", "uid-a", Notice("MaintenanceDone", message)))
    body = json.loads(server.asked[0].body)

    begun, ended = "Sat 2026-11-21 23:00 CET (Europe/Berlin)", "Sat 2026-11-21 23:30"
    assert body["message"] == f"drained from {begun} to {ended}"
    assert body["firstTimestamp"].endswith("Z")


@pytest.mark.parametrize(
    ("status", "reason", "settled"),
    [
        pytest.param(201, "", True, id="written"),
        pytest.param(409, "AlreadyExists", True, id="written before"),
        pytest.param(409, "Conflict", False, id="a quota that changes"),
        pytest.param(429, "TooManyRequests", False, id="the server throttles"),
        pytest.param(500, "InternalError", False, id="the server failed"),
        pytest.param(503, "ServiceUnavailable", False, id="the server is away"),
        pytest.param(403, "Forbidden", True, id="a permission is missing"),
        pytest.param(422, "Invalid", True, id="refused for good"),
    ],
)
def test_an_event_is_settled_unless_a_later_try_may_succeed(
    stub: StubMaker, status: int, reason: str, settled: bool
) -> None:
    _, connection = stub(lambda _: answer(status, reason, "because"))
    ours = KubernetesEvents(connection, guard=lambda: None)

    settles = ours.notify(Notification("a", "uid-a", Notice("MaintenanceMissed", "because", once="now")))

    assert settles is settled


@pytest.mark.parametrize(("error", "raised"), [(OverflowError, False), (LockLost, True)])
def test_only_a_lost_lock_ends_the_pass(
    stub: StubMaker, caplog: pytest.LogCaptureFixture, error: type[Exception], raised: bool
) -> None:
    def guard() -> None:
        raise error("because")

    _, connection = stub(lambda _: Answer(status=201))
    ours = KubernetesEvents(connection, guard=guard)
    with pytest.raises(LockLost) if raised else nullcontext():
        assert ours.notify(Notification("a", "uid-a", Notice("MaintenanceMissed", "because")))

    assert ("node=a reason=MaintenanceMissed" in caplog.text) is not raised
