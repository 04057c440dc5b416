"""Kubelets of another version on the real API server: labelled, and replaced by the example."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.runtime.machines import MachineProviders
from reconciler.features.kubernikus.client import Servers
from reconciler.features.kubernikus.process import OPENSTACK
from reconciler.features.kubernikus.settings import UPDATE_LABEL
from tests.features.kubernikus.kluster import PROFILES
from tests.real.passes.scene import POOL, Scene
from tests.support.fakes.openstack import FakeOpenStack

OLD = "v1.35.1"


@pytest.fixture
def cloud(scene: Scene) -> Iterator[FakeOpenStack]:
    scene.api.create_namespace("node-maintenance")
    scene.set(PROFILES)
    with FakeOpenStack() as made:
        servers = Servers(lambda: made.access, lambda: None)
        scene.machines = MachineProviders({OPENSTACK: lambda: servers})
        yield made


def make(scene: Scene, cloud: FakeOpenStack, number: int, kubelet: str = "") -> str:
    """A server and its node, with the version of the API server unless another one is given."""
    node = POOL.node(number, now=scene.now, images=1)
    name = str(node["metadata"]["name"])
    node["metadata"]["labels"]["cloud.sap/maintenance-profile"] = "flatcar--kubelet"
    node["spec"]["providerID"] = cloud.add(name, number + 1).provider_id
    if kubelet:
        node["status"]["nodeInfo"]["kubeletVersion"] = kubelet
    scene.api.create("nodes", node)
    return name


def marks(scene: Scene) -> dict[str, str]:
    found = scene.api.list("nodes")
    return {one["metadata"]["name"]: one["metadata"]["labels"].get(UPDATE_LABEL, "") for one in found}


def test_nodes_with_an_older_kubelet_are_replaced_one_after_the_other(
    scene: Scene, cloud: FakeOpenStack
) -> None:
    old = [make(scene, cloud, number, OLD) for number in range(2)]
    scene.workload("web", old[0])
    scene.finish()
    assert marks(scene) == dict.fromkeys(old, "true")

    made = len(old)
    for _ in range(16):
        scene.clock.advance(minutes=5)
        scene.finish()
        gone = cloud.step()
        assert len(gone) < 2
        for name in gone:
            assert scene.pods_on(name) == []
            scene.api.delete("nodes", name)
            make(scene, cloud, made)
            made += 1
        if made == 2 * len(old) and set(marks(scene).values()) == {"false"}:
            break

    assert set(marks(scene).values()) == {"false"}
    assert set(marks(scene)).isdisjoint(old)
    assert len(cloud.deletions()) == len(old)
