"""The client of workflows: no name leads to another object, and no request holds a pass (law 26)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.workflows.client import Client
from reconciler.features.workflows.reading import Needs, read_for_checks
from reconciler.features.workflows.services import NAME, HypervisorWrite
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.scale.beside import ThreadsBeside
from reconciler.model.errors import Rejected
from reconciler.model.leases import LeaseRef
from reconciler.model.ports import Outside
from tests.support.stub import Answer, Stub, StubMaker


def test_a_hypervisor_with_a_hostile_name_is_not_written(stub: StubMaker) -> None:
    server, connection = stub(lambda _: Answer())

    with pytest.raises(Rejected, match="is no name of a Kubernetes object"):
        Client(connection, lambda: None).write_hypervisor(HypervisorWrite("../a", "u", {"reboot": True}))
    assert server.asked == []


def test_no_read_for_checks_holds_a_pass(tmp_path: Path) -> None:
    turn, beside = LeaseRef("ops", "turn-0"), ThreadsBeside()
    # Nothing is read of nodes and pods.
    reader: Any = None
    with closing(Stub(lambda _: Answer(hang=True))) as server:
        client = Client(Connection(str(server.write_kubeconfig(tmp_path / "kubeconfig"))), None)
        beside.begins(0.1)
        outside = Outside(reader=reader, clients={NAME: client}, beside=beside)
        read = read_for_checks(outside, Needs(leases=frozenset({turn}), hypervisors=True))

    assert read.unread_leases[turn].startswith("no answer yet to: the Lease")
    assert read.unread_hypervisors == "no answer yet to: Hypervisors"
