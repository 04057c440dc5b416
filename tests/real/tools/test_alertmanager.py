"""Silences on a real Alertmanager: opened, found again, extended and ended, and nobody else's touched."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.features.notices.silences import Silencer, WantedSilences
from reconciler.features.notices.transports.sending import Http, NotSent
from tests.features.notices.following import entries
from tests.support.tools.running import RunningAlertmanager

TWO = WantedSilences(
    (("uid-a", "a", "Reboot"), ("uid-b", "b", "Reboot")), ours=frozenset({"uid-a", "uid-b", "uid-c"})
)
NONE = WantedSilences(ours=TWO.ours)


@pytest.fixture
def http() -> Iterator[Http]:
    made = Http()
    yield made
    made.close()


def silencer(url: str, http: Http, matchers: str = "['node={node}']") -> Silencer:
    """What a new process has."""
    (entry,) = entries(f"notify: [{{name: all, alertmanager: {{url: '{url}', matchers: {matchers}}}}}]")
    return Silencer(entry, http)


def test_alerts_of_a_node_are_silenced_until_its_maintenance_ends(
    alertmanager: RunningAlertmanager, http: Http
) -> None:
    now = datetime.now(UTC)
    for node in ("a", "b", "c"):
        alertmanager.alert(node=node)
    silencer(alertmanager.url, http).keep(TWO, now)

    assert [alertmanager.is_silenced(node=one) for one in ("a", "b", "c")] == [True, True, False]
    assert {one["comment"] for one in alertmanager.silences()} == {
        "node a (uid uid-a): maintenance of the node (Reboot)",
        "node b (uid uid-b): maintenance of the node (Reboot)",
    }
    # Another process finds them, and ends one.
    silencer(alertmanager.url, http).keep(WantedSilences(TWO.nodes[:1], ours=TWO.ours), now)
    assert [alertmanager.is_silenced(node=one) for one in ("a", "b", "c")] == [True, False, False]
    silencer(alertmanager.url, http).keep(NONE, now)
    assert alertmanager.silences() == []


def test_a_silence_is_extended_and_not_opened_twice(alertmanager: RunningAlertmanager, http: Http) -> None:
    now = datetime.now(UTC)
    keeper = silencer(alertmanager.url, http)
    keeper.keep(TWO, now)
    before = {one["id"]: one["updatedAt"] for one in alertmanager.silences()}
    keeper.keep(TWO, now + timedelta(minutes=10))
    assert {one["id"]: one["updatedAt"] for one in alertmanager.silences()} == before
    keeper.keep(TWO, now + timedelta(minutes=25))

    after = alertmanager.silences()
    assert {one["id"] for one in after} == set(before)
    assert all(one["updatedAt"] != before[one["id"]] for one in after)


def test_silences_of_others_and_of_nodes_that_are_not_ours_stay(
    alertmanager: RunningAlertmanager, http: Http
) -> None:
    now = datetime.now(UTC)
    alertmanager.silence(node="a")
    keeper = silencer(alertmanager.url, http)
    keeper.keep(TWO, now)
    keeper.keep(WantedSilences(unknown=frozenset({"uid-a"}), ours=frozenset({"uid-a"})), now)

    assert sorted(one["comment"][:22] for one in alertmanager.silences()) == [
        "node a (uid uid-a): by",
        "node a (uid uid-a): ma",
        "node b (uid uid-b): ma",
    ]


def test_what_alertmanager_refuses_is_reported(alertmanager: RunningAlertmanager, http: Http) -> None:
    wrong = silencer(f"{alertmanager.url}/elsewhere", http)

    with pytest.raises(NotSent, match="answered 404") as found:
        wrong.keep(TWO, datetime.now(UTC))
    assert found.value.refused
