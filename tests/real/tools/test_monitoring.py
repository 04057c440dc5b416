"""k8s/monitoring on a real API server, with the kinds of the Prometheus Operator."""

from __future__ import annotations

import os

import pytest
import yaml

from tests.monitoring.rules import MONITORING
from tests.real.manifests.applying import applied_by_kubectl, built, kubectl
from tests.support.controlplane.server import ControlPlane
from tests.support.tools.building import NoTool
from tests.support.tools.operator_kinds import find_kinds


@pytest.fixture
def operated(cluster: ControlPlane) -> ControlPlane:
    """A cluster with the kinds of the operator and the namespace of the reconciler."""
    try:
        files = find_kinds()
    except NoTool as error:
        if os.environ.get("CONTROLPLANE_REQUIRED"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    for file in files:
        kubectl(cluster, "create", "-f", str(file))
        kubectl(cluster, "wait", "--for=condition=Established", "--timeout=30s", "-f", str(file))
    cluster.api.create_namespace("node-maintenance")
    return cluster


def test_the_api_server_accepts_it_twice_and_keeps_every_field(operated: ControlPlane) -> None:
    with applied_by_kubectl(operated, "monitoring") as said:
        assert {line.partition("/")[0] for line in said.splitlines()} == {
            "configmap",
            "podmonitor.monitoring.coreos.com",
            "prometheusrule.monitoring.coreos.com",
        }
        again = kubectl(operated, "apply", "-k", str(MONITORING))
        kept = kubectl(operated, "get", "-k", str(MONITORING), "-o", "yaml")

    assert [line for line in again.splitlines() if not line.endswith(" unchanged")] == []
    # What a definition does not know is dropped without a word.
    found = {one["kind"]: one.get("spec") for one in yaml.safe_load(kept)["items"]}
    assert found == {one["kind"]: one.get("spec") for one in built("monitoring")}
