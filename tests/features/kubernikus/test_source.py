"""Kubelets of another version than the control plane."""

from __future__ import annotations

import pytest

from reconciler.features.kubernikus.source import KubeletVersions, read
from reconciler.model.errors import Unreachable
from reconciler.model.event import Answer, Kind, Reading
from reconciler.model.node import TYPE_LABEL
from reconciler.model.snapshot import ServerVersion
from reconciler.model.values import replace
from reconciler.passes.plugin import SourceContext
from reconciler.simulation.api import Call
from tests.laws.histories import History, small_world
from tests.support import builders
from tests.support.builders import NOW, minutes

SETTINGS = "sources: {kubernikus: {enabled: true}}\nuncordon: {settle: 0s}\nbudget: {maxUnavailable: 1}"


def compared(kubelet: str, server: str) -> Reading:
    return read(replace(builders.node(), kubelet_version=kubelet), ServerVersion(server))


@pytest.mark.parametrize(
    ("kubelet", "server"),
    [
        pytest.param("v1.32.1", "v1.33.2", id="older"),
        pytest.param("v1.33.3", "v1.33.2", id="newer"),
        pytest.param("v1.33.1", "v1.33.2", id="another patch"),
        pytest.param("v1.33.20", "v1.33.2", id="begins alike"),
    ],
)
def test_another_version_is_an_event(kubelet: str, server: str) -> None:
    reading = compared(kubelet, server)
    (signal,) = reading.signals

    assert (reading.answer, signal.kind, signal.not_before) == (Answer.EVENT, Kind.REDEPLOY, None)
    assert signal.description == f"the kubelet has version {kubelet}, the control plane {server}"


@pytest.mark.parametrize(
    ("kubelet", "server"),
    [
        ("v1.33.2", "v1.33.2"),
        ("v1.33.2-gke.100", "v1.33.2-gke.200"),
        ("1.33.2", "v1.33.2+k3s1"),
        ("v1.33.2-eks-0d7ab", "v1.33.2"),
    ],
)
def test_builds_of_a_vendor_do_not_count(kubelet: str, server: str) -> None:
    assert compared(kubelet, server).answer is Answer.NO_EVENT


@pytest.mark.parametrize(
    ("kubelet", "server", "said"),
    [
        pytest.param("", "v1.33.2", "the version of the kubelet is ''", id="not registered"),
        pytest.param("v1.33", "v1.33.2", "the version of the kubelet is 'v1.33'", id="no patch"),
        pytest.param("v1.33.2", "main", "the version of the API server is 'main'", id="no version"),
        pytest.param(f"v1.{'9' * 400}.2", "v1.33.2", "the version of the kubelet is", id="endless"),
        pytest.param("v1.33.2\n", "v1.33.2", "the version of the kubelet is", id="a second line"),
        pytest.param("v1.3\u0663.2", "v1.33.2", "the version of the kubelet is", id="other digits"),
    ],
)
def test_a_version_that_can_not_be_read_is_unknown(kubelet: str, server: str, said: str) -> None:
    reading = compared(kubelet, server)

    assert reading.answer is Answer.UNKNOWN
    assert reading.because.startswith(said)


def test_a_virtual_node_has_no_kubelet_to_update() -> None:
    virtual = replace(builders.node(labels={TYPE_LABEL: "virtual-kubelet"}), kubelet_version="v1.19.10-vk")
    context = SourceContext(builders.settings(SETTINGS), NOW, server=ServerVersion("v1.33.2"))

    assert KubeletVersions().read(virtual, context) == ()


# Over whole passes.


def scene() -> History:
    """Three nodes with older kubelets."""
    made = History(small_world(), builders.settings(SETTINGS))
    for node in list(made.cluster.nodes.values()):
        made.cluster.put_node(replace(node, kubelet_version="v1.32.1"))
    made.cluster.server_version = ServerVersion("v1.32.1")
    return made


def look(made: History, passes: int = 3) -> list[str]:
    """Run passes, and return the nodes in maintenance."""
    for _ in range(passes):
        made.look()
        made.wait(minutes(10))
    return [name for name, node in sorted(made.cluster.nodes.items()) if node.unschedulable]


def test_without_the_version_of_the_api_server_nothing_starts_and_nothing_ends() -> None:
    made = scene()
    made.cluster.server_version = ServerVersion("v1.33.2")
    (first,) = look(made)

    def refuse(call: Call) -> None:
        if call.what == "server_version":
            raise Unreachable("no answer")

    made.api.before_read = refuse
    made.cluster.put_node(replace(made.cluster.nodes[first], kubelet_version="v1.33.2"))
    assert look(made) == [first]

    made.api.before_read = None
    (second,) = look(made)
    assert second != first


def test_a_node_that_somebody_uncordoned_waits_for_the_next_version() -> None:
    made = scene()
    made.cluster.server_version = ServerVersion("v1.33.2")
    (first,) = look(made)
    made.cluster.cordon(first, on=False)
    assert first not in look(made)

    for name, node in list(made.cluster.nodes.items()):
        if name != first:
            made.cluster.put_node(replace(node, kubelet_version="v1.33.3"))
    made.cluster.server_version = ServerVersion("v1.33.3")
    assert look(made) == [first]


def test_the_version_is_read_only_for_this_source() -> None:
    made = scene()
    seen: list[str] = []
    made.api.before_read = lambda call: seen.append(call.what)
    made.look()
    made.settings = builders.settings()
    made.look()

    assert seen.count("server_version") == 1
