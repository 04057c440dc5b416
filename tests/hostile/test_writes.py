"""Which writes of `serve` a hostile session accepts."""

from __future__ import annotations

import pytest

from tests.hostile.session import Session

TREATED = {"vm-1"}


@pytest.mark.parametrize(
    "write",
    [
        "PATCH /api/v1/nodes/vm-1",
        "POST /api/v1/namespaces/default/pods/vm-1-abc/eviction",
        "POST /api/v1/namespaces/hostile/pods/hostile-3/eviction",
        "PATCH /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/lock",
        "POST /api/v1/namespaces/default/events",
        "POST /api/v1/namespaces",
    ],
)
def test_writes_about_treated_nodes_and_own_objects_are_accepted(write: str) -> None:
    assert Session.allowed(write, TREATED)


@pytest.mark.parametrize(
    "write",
    [
        "PATCH /api/v1/nodes/vm-2",
        "PATCH /api/v1/nodes/vm-10",
        "PATCH /api/v1/nodes/vm-2/status",
        "DELETE /api/v1/nodes",
        "POST /api/v1/namespaces/default/pods/vm-2-abc/eviction",
        "POST /api/v1/namespaces/default/pods/vm-10-abc/eviction",
        "DELETE /api/v1/namespaces/kube-system",
        "PATCH /apis/apps/v1/namespaces/kube-system/deployments/x",
    ],
)
def test_other_writes_are_reported(write: str) -> None:
    assert not Session.allowed(write, TREATED)
