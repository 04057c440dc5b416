"""Under exactly the rights of k8s/hypervisors, Hypervisors are read and changed; nothing else is granted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.features.workflows.client import Client
from reconciler.features.workflows.reading import Needs, read_for_checks
from reconciler.features.workflows.services import NAME, HypervisorWrite
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import ClusterError, Forbidden
from reconciler.model.ports import Outside
from tests.real.manifests.applying import applied
from tests.real.manifests.permissions import granted, missing, unused, used
from tests.support.controlplane import hypervisors
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

SYSTEM = "node-maintenance"


@pytest.fixture
def ours(cluster: ControlPlane) -> Iterator[Client]:
    """The reconciler, without any permission."""
    cluster.api.create_namespace(SYSTEM)
    cluster.api.create("serviceaccounts", {"metadata": {"name": "reconciler", "namespace": SYSTEM}})
    hypervisors.install(cluster.api)
    connection = Connection(str(cluster.kubeconfig_for("reconciler", SYSTEM)))
    yield Client(connection, lambda: None)
    connection.close()


def test_a_hypervisor_is_read_and_changed(cluster: ControlPlane, ours: Client) -> None:
    uid = hypervisors.make(cluster.api, "a")["metadata"]["uid"]

    def listed() -> bool:
        try:
            return len(ours.hypervisors() or ()) == 1
        except ClusterError:
            # The server learns of a new role a moment later.
            return False

    with applied(cluster, "hypervisors"):
        wait_for("the rights", listed)
        ours.write_hypervisor(HypervisorWrite("a", uid, {"maintenance": "auto"}))

    assert hypervisors.found(cluster.api, "a")["spec"]["maintenance"] == "auto"
    entries = used(cluster.audit_entries())
    assert missing(granted("hypervisors"), entries) == set()
    assert unused(granted("hypervisors"), entries) == set()


def test_what_is_missing_is_named(cluster: ControlPlane, ours: Client) -> None:
    # Nothing is read of nodes and pods.
    reader: Any = None
    read = read_for_checks(Outside(reader=reader, clients={NAME: ours}), Needs(hypervisors=True))
    with pytest.raises(Forbidden, match=r"needs patch hypervisors.kvm.cloud.sap \(k8s/hypervisors has it\)"):
        ours.write_hypervisor(HypervisorWrite("a", "u", {"maintenance": "auto"}))

    assert read.unread_hypervisors == "needs list hypervisors.kvm.cloud.sap"
