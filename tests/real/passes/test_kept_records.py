"""A node that can't hold its record is protected: our ConfigMap has the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import LEDGER
from reconciler.kubernetes.kept_records import KEPT
from reconciler.kubernetes.reader import NAMESPACE
from reconciler.model.errors import LockLost
from tests.real.passes.scene import PREFIX, Scene
from tests.support.controlplane.api import ApiError
from tests.support.controlplane.webhooks import for_nodes, in_force

RECORD = f"{PREFIX}/record"
LABEL = f"{PREFIX}/record-kept"
POLICY, BINDING = for_nodes(
    "no-records", f"!('{RECORD}' in object.metadata.?annotations.orValue({{}}))", "only known annotations"
)


@pytest.fixture(autouse=True)
def ledger(scene: Scene) -> None:
    """The place of our ConfigMap, which the lock creates."""
    scene.api.create_namespace(NAMESPACE)


@pytest.fixture
def denied(scene: Scene) -> Iterator[str]:
    """A node in a cluster with a policy that denies the record."""
    node = scene.node()

    def denies() -> bool:
        try:
            scene.annotate(node, "record", "{}")
            scene.annotate(node, "record", None)
        except ApiError:
            return True
        return False

    with in_force(scene.api, POLICY, BINDING, denies):
        yield node


def kept(scene: Scene) -> str:
    """What our ConfigMap has of records."""
    found = scene.api.find("configmaps", LEDGER, NAMESPACE)
    return str(found["data"].get(KEPT, "")) if found else ""


def is_as_before(scene: Scene, node: str) -> bool:
    """Whether neither the node nor our ConfigMap has anything of a case."""
    return scene.is_untouched(node) and LABEL not in scene.api.get("nodes", node)["metadata"]["labels"]


def drain(scene: Scene, node: str) -> None:
    """Let the platform announce an event, and the passes drain the node."""
    scene.clock.advance(hours=1)
    scene.condition_tells(node)
    scene.finish()


def end(scene: Scene, node: str) -> None:
    """Let the platform take the event back, and the passes end the case."""
    for _ in range(2):
        scene.condition_silent(node)
        scene.run()
        scene.clock.advance(minutes=3)


def check_protected(scene: Scene, node: str, refusal: str) -> None:
    """The node is drained for its event, comes back after it, and is served once more."""
    scene.workload("web", node)
    for _ in range(2):
        scene.clock.advance(hours=1)
        scene.condition_tells(node)
        assert any(refusal in done["detail"] for done in scene.run().document["outcomes"])
        assert scene.cordoned(node)
        assert scene.record(node) is None
        # The process that ends the drain need not be the one that began it.
        scene.new_process()
        scene.finish()
        assert scene.pods_on(node) == []
        assert kept(scene) != ""

        end(scene, node)
        assert is_as_before(scene, node)
        assert kept(scene) == ""


def test_a_policy_that_denies_the_record_keeps_no_node_from_its_drain(scene: Scene, denied: str) -> None:
    check_protected(scene, denied, "only known annotations")


def test_annotations_at_their_limit_keep_no_node_from_its_drain(scene: Scene) -> None:
    node = scene.node()
    have = scene.api.get("nodes", node)["metadata"].get("annotations") or {}
    size = sum(len(key) + len(text) for key, text in have.items())
    notes = {"theirs.example.com/notes": "x" * ((256 << 10) - size - 50)}
    scene.api.patch("nodes", node, {"metadata": {"annotations": notes}})

    check_protected(scene, node, "Too long")


class Killed:
    """A guard that ends the process before its nth write."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise LockLost("killed")


@pytest.mark.parametrize("phase", [drain, end])
def test_killed_at_any_write_the_next_pass_ends_in_the_same_state(
    scene: Scene, denied: str, phase: Callable[[Scene, str], None]
) -> None:
    whole = scene.cluster
    for at in range(1, 20):
        if phase is end:
            drain(scene, denied)
        killed = Killed(at)
        scene.cluster = Cluster(scene.connection, guard=killed)
        with suppress(LockLost):
            phase(scene, denied)
        scene.cluster = whole
        scene.finish()
        if phase is drain:
            # What is written in part is nobody's uncordon.
            assert scene.cordoned(denied), at
        end(scene, denied)
        assert is_as_before(scene, denied), at
        if killed.left > 0:
            break
    assert at > 2
