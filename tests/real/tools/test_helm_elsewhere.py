"""A release in another namespace, with an account of another name, is guarded as the usual one.

The tests of the admission policies run again, with the policies and the account of such a release.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.manifests.test_node_policies import (
    KEYS,
    OURS,
    WIDE,
    fresh,
    in_force,
    kubelet,
    make_nodes,
    node,
    test_a_kubelet_may_not_write_our_keys_on_its_own_node,
    test_nor_others_labels_by_way_of_the_status,
    test_the_policy_names_what_triggers_of_workflows_may_change,
    test_the_reconciler_may_neither_create_nor_delete_nodes_nor_reach_the_kubelet,
    test_the_reconciler_may_remove_its_taint,
    test_the_reconciler_may_write_nothing_else,
    test_the_reconciler_may_write_nothing_else_of_the_status,
    test_the_reconciler_may_write_the_lifecycle_conditions_and_remove_them,
    test_the_reconciler_may_write_what_it_writes,
)
from tests.support.controlplane.api import Api
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.tools.helm import Helm

__all__ = [
    "fresh",
    "node",
    "test_a_kubelet_may_not_write_our_keys_on_its_own_node",
    "test_nor_others_labels_by_way_of_the_status",
    "test_the_policy_names_what_triggers_of_workflows_may_change",
    "test_the_reconciler_may_neither_create_nor_delete_nodes_nor_reach_the_kubelet",
    "test_the_reconciler_may_remove_its_taint",
    "test_the_reconciler_may_write_nothing_else",
    "test_the_reconciler_may_write_nothing_else_of_the_status",
    "test_the_reconciler_may_write_the_lifecycle_conditions_and_remove_them",
    "test_the_reconciler_may_write_what_it_writes",
]


NAMESPACE, ACCOUNT = "ops", "drainer"


def drainer(cluster: ControlPlane) -> Api:
    wait_for("the account", lambda: cluster.api.find("serviceaccounts", ACCOUNT, NAMESPACE))
    return Api(cluster.kubeconfig_for(ACCOUNT, NAMESPACE), user_agent="tests-drainer")


@pytest.fixture(scope="module")
def guarded(
    controlplane: ControlPlane, helm_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """The release with its policies in force; its RBAC is wider than shipped."""
    controlplane.start_apiserver()
    controlplane.clean()
    controlplane.api.create_namespace(NAMESPACE)
    helm = Helm(helm_program, tmp_path_factory.mktemp("helm"), controlplane.kubeconfig)
    helm.namespace = NAMESPACE
    helm.upgrade({"serviceAccount": {"name": ACCOUNT}})
    try:
        controlplane.api.patch("clusterroles", OURS, {"rules": [WIDE]})
        make_nodes(controlplane.api)
        for api, name in ((kubelet(controlplane), KEYS), (drainer(controlplane), OURS)):
            with api:
                in_force(api, name)
        yield controlplane
    finally:
        helm.uninstall()
        controlplane.clean()


@pytest.fixture
def ours(guarded: ControlPlane) -> Iterator[Api]:
    """The API server as the account of the release sees it."""
    with drainer(guarded) as api:
        yield api
