"""Under exactly the rights of k8s/hooks, a hook's Job is created and read, and nothing else is granted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.features.hooks.hook import HookId, HookKey, HookKind, HookRun, HookState
from reconciler.features.hooks.process import SettingsHooks
from reconciler.kubernetes.connection import Connection
from reconciler.model.steps import HeldStep
from reconciler.settings.load import parse_settings
from tests.real.manifests.applying import applied
from tests.real.manifests.permissions import granted, missing, unused, used
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

SYSTEM = "node-maintenance"
SETTINGS = """
hooks: {preDrain: [{name: sync, job: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}}]}
"""


@pytest.fixture
def ours(cluster: ControlPlane) -> Iterator[Connection]:
    """To the API server as an account that has these rights and no others."""
    cluster.api.create_namespace(SYSTEM)
    cluster.api.create("serviceaccounts", {"metadata": {"name": "reconciler", "namespace": SYSTEM}})
    with applied(cluster, "hooks"):
        connection = Connection(str(cluster.kubeconfig_for("reconciler", SYSTEM)))
        yield connection
        connection.close()


def test_a_job_is_created_once_and_read(cluster: ControlPlane, ours: Connection) -> None:
    node = cluster.api.create("nodes", {"metadata": {"name": "a"}})
    hooks = SettingsHooks(ours, SYSTEM, parse_settings(SETTINGS, "x"), lambda: None)
    since = datetime.now(UTC).replace(microsecond=0)
    id_ = HookId(HeldStep.PRE_DRAIN, "sync", HookKind.JOB)
    key = HookKey("a", node["metadata"]["uid"], id_, since)
    wait_for("the rights", lambda: hooks.answers([key])[key].state is HookState.ABSENT)
    for _ in range(2):
        hooks.run(HookRun(key, since, timedelta(minutes=10)))

    assert hooks.answers([key])[key].state is HookState.RUNNING
    entries = used(cluster.audit_entries())
    assert missing(granted("hooks"), entries) == set()
    assert unused(granted("hooks"), entries) == set()
