"""Hypervisors on the real API server: what is read of them, and how fields of one are set."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.features.workflows.client import Client
from reconciler.features.workflows.services import SPEC, STATUS, HypervisorWrite
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import Conflict, LockLost, NotFound, Rejected
from reconciler.model.limits import EVENTS, TEXT
from tests.support.controlplane import hypervisors
from tests.support.controlplane.server import ControlPlane

REFUSED: tuple[tuple[dict[str, object], str], ...] = (
    ({"maintenance": "perhaps"}, "Unsupported value"),
    ({"highAvailability": True}, "unknown field"),
)


@pytest.fixture
def ours(connection: Connection) -> Client:
    """Reads, and writes without a lock."""
    return Client(connection, lambda: None)


def written(ours: Client, name: str, **fields: Any) -> None:
    """Set the fields on the Hypervisor that the name has now."""
    uid = {one.name: one.uid for one in ours.hypervisors() or ()}.get(name, "none")
    ours.write_hypervisor(HypervisorWrite(name, uid, fields))


def test_without_the_kind_there_is_nothing(cluster: ControlPlane, ours: Client) -> None:
    assert ours.hypervisors() is None


def test_all_hypervisors_are_read_with_the_values_that_absent_fields_mean(
    cluster: ControlPlane, ours: Client
) -> None:
    hypervisors.install(cluster.api)
    assert ours.hypervisors() == ()
    status = {
        "evicted": True,
        "aggregates": [{"name": "one"}, {"name": "two"}],
        "conditions": [{"type": "Ready", "status": "False", "message": "evicted"}],
    }
    hypervisors.make(cluster.api, "a", {"maintenance": "auto"}, status)
    hypervisors.make(cluster.api, "b")

    first, second = ours.hypervisors() or ()

    assert first.spec == {**SPEC, "maintenance": "auto", "evacuateOnReboot": True}
    assert first.status == {**STATUS, "evicted": True, "aggregates": ("one", "two")}
    assert first.conditions == {"Ready": "False"}
    assert (second.name, second.status, second.conditions) == ("b", STATUS, {})


def test_fields_of_other_types_and_sizes_harm_only_themselves(cluster: ControlPlane, ours: Client) -> None:
    hypervisors.install(cluster.api, strict=False)
    status = {
        "evicted": "true",
        "numInstances": 1e300,
        "hypervisorVersion": "v" * 100_000,
        "traits": [f"trait-{number}" for number in range(10_000)],
        "aggregates": [["a"]],
        "conditions": [{"type": "Ready"}],
    }
    hypervisors.make(cluster.api, "a", {"maintenance": {"deep": [1]}, "skipTests": True}, status)
    hypervisors.make(cluster.api, "b", status={"evicted": True})

    first, second = ours.hypervisors() or ()

    broken = ("evicted", "numInstances", "aggregates")
    assert [first.status[key] for key in broken] == [None, None, None]
    assert len(str(first.status["hypervisorVersion"])) == TEXT
    traits = first.status["traits"]
    assert isinstance(traits, tuple)
    assert len(traits) == EVENTS + 1
    assert first.conditions is None
    assert (first.spec["maintenance"], first.spec["skipTests"]) == (None, True)
    assert second.status["evicted"] is True


def test_fields_are_set_and_all_others_stay(cluster: ControlPlane, connection: Connection) -> None:
    def lost() -> None:
        raise LockLost("it was taken")

    ours = Client(connection, lambda: None)
    hypervisors.install(cluster.api)
    hypervisors.make(cluster.api, "a", {"maintenanceReason": "disk"}, {"evicted": True})
    other = hypervisors.make(cluster.api, "b")

    for _ in range(2):
        written(ours, "a", maintenance="manual", aggregates=("one",), skipTests=True)
    for fields, said in REFUSED:
        with pytest.raises(Rejected, match=said):
            written(ours, "a", **fields)
    with pytest.raises(Conflict):
        ours.write_hypervisor(HypervisorWrite("a", "another", {"skipTests": False}))
    with pytest.raises(NotFound):
        written(ours, "gone", skipTests=False)
    with pytest.raises(LockLost):
        written(Client(connection, lost), "a", skipTests=False)

    found = hypervisors.found(cluster.api, "a")
    assert found["spec"] == {
        "maintenance": "manual",
        "maintenanceReason": "disk",
        "skipTests": True,
        "evacuateOnReboot": True,
        "aggregates": ["one"],
    }
    assert found["status"]["evicted"] is True
    assert hypervisors.found(cluster.api, "b") == other
