"""The program under exactly the rights that the manifests give its ServiceAccount."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.real.manifests.applying import applied, built, leaving_out
from tests.real.manifests.permissions import granted, missing, unused, used
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene, cover, volume
from tests.support.controlplane.api import Object
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.workloads import budget, deployment, pod
from tests.support.stub import Answer, Stub

pytestmark = pytest.mark.slow

NAMESPACE = "node-maintenance"


def account(controlplane: ControlPlane) -> Path:
    wait_for("the account", lambda: controlplane.api.find("serviceaccounts", "reconciler", NAMESPACE))
    return controlplane.kubeconfig_for("reconciler", NAMESPACE)


SETTINGS = "mode: Enforce\nbudget: {maxUnavailable: 100%, spacing: 1s}\nuncordon: {settle: 0s}\n"


@contextmanager
def installed(scene: Scene, *folders: str) -> Iterator[Path]:
    """Folders of manifests; the kubeconfig of the reconciler's account."""
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(applied(scene.controlplane, folder))
        yield account(scene.controlplane)


def compare(scene: Scene, added: str, *folders: str) -> None:
    """What was asked is granted by the folders, and all that the added one grants was asked."""
    entries = used(scene.asked())
    grants = {grant for folder in (added, *folders) for grant in granted(folder)}

    assert missing(grants, entries) == set()
    assert unused(granted(added), entries) == set()
    # An API that is not installed is a 404. A patch may come to a pod or a node that has changed meanwhile.
    assert [one for one in entries if one.code in (401, 403)] == []


def about_settings(scene: Scene, reason: str = "SettingsRejected") -> list[Object]:
    """The Events about rejected settings, or those with another reason."""
    return [one for one in scene.api.list("events", NAMESPACE) if one["reason"] == reason]


def kept(scene: Scene, verb: str, name: str) -> list[AuditEntry]:
    """The writes of what is kept in the ConfigMap of this name: `observed`, in mode Observe, or `history`."""
    entries = scene.asked(verb)
    return [one for one in entries if one.resource == "configmaps" and name in one.name]


@pytest.fixture
def receiver() -> Iterator[Stub]:
    """A server that takes every notice."""
    made = Stub(lambda _: Answer(b"ok"))
    yield made
    made.close()


@pytest.mark.parametrize("way", ["cronjob", "deployment"])
def test_the_base_grants_what_passes_ask_and_nothing_else(
    scene: Scene, programs: Programs, receiver: Stub, way: str
) -> None:
    began = datetime.now(UTC)
    programs.configure(f"{SETTINGS}notify: [{{name: hook, webhook: {{url: '{receiver.url}'}}, group: 0s}}]\n")
    first, second = scene.node(0), scene.node(1)
    scene.workload("web", first, replicas=2)
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=2))
    scene.workload("held", second)
    cover(scene, "held")
    # A pod that stays, with a volume for which the drain does not wait.
    scene.api.create("pods", pod("log", node_name=first, volumes=volume(scene, "westeurope-1")))
    spec = {"attacher": "disk.csi.azure.com", "nodeName": first, "source": {"persistentVolumeName": "data"}}
    scene.api.create("volumeattachments", {"metadata": {"name": "data"}, "spec": spec})
    with installed(scene, way) as kubeconfig:
        enforced = programs.config.read_text(encoding="utf-8")
        programs.configure(enforced.replace("mode: Enforce", "mode: Observe"))
        watching = programs.start("serve", "--every", "1s", kubeconfig=kubeconfig)
        wait_for("what is observed", lambda: kept(scene, "create", "observed"), seconds=60)
        # With another mode, that ends.
        programs.configure(enforced)
        wait_for("the end of that", lambda: kept(scene, "patch", "observed"), seconds=60)
        assert watching.terminate().code == 0
        scene.condition_tells(first)
        assert programs.run("report", kubeconfig=kubeconfig).code == 0
        assert programs.sweep("--for", "30s", kubeconfig=kubeconfig).code == 0
        scene.condition_silent(first)
        # The ledger is there now, and the second start changes it.
        scene.condition_tells(second)
        ours = {"POD_NAME": "ours", "POD_NAMESPACE": NAMESPACE} if way == "deployment" else {}
        serving = programs.start("serve", "--every", "1h", kubeconfig=kubeconfig, pod=ours)
        serving.wait_for("leading")
        wait_for("the second start", lambda: scene.cordoned(second), seconds=60)
        # While its budget holds the pod, the drainer watches the budgets.
        # A watch of an earlier test may end, and be logged, only now.

        def watched() -> bool:
            return any(one.group == "policy" for one in used(scene.asked("watch", since=began)))

        wait_for("a watch", watched)
        scene.api.delete("poddisruptionbudgets", "held", "default")
        assert programs.run("sweep", kubeconfig=kubeconfig).code == 0
        scene.condition_silent(second)
        wait_for("the end of both", lambda: scene.is_untouched(first) and scene.is_untouched(second))
        # What is kept of cases and the revisions of the settings are there now; other settings change both.
        wait_for("the cases", lambda: kept(scene, "create", "history"))
        programs.configure(f"{programs.config.read_text(encoding='utf-8')}drain: {{parallel: 2}}\n")
        wait_for("another revision", lambda: [one for one in scene.asked("patch") if "settings" in one.name])
        wait_for("who changed them", lambda: kept(scene, "patch", "history"))
        if ours:
            good = programs.config.read_text(encoding="utf-8")
            programs.configure("mode: Enforced\n")
            wait_for("an Event", lambda: about_settings(scene))
            programs.configure(good)
            wait_for("its end", lambda: about_settings(scene, "SettingsAccepted"))
        assert serving.terminate().code == 0
        if ours:
            programs.configure("mode: Enforced\n")
            # There are no last good settings at a start.
            again = programs.start("serve", kubeconfig=kubeconfig, pod=ours)
            assert again.wait().code == 2
            assert len(about_settings(scene)) == 2

        compare(scene, way)


KEPT = ("history", "notices", "observed", "pods", "settings")
"""The ConfigMaps of features that can be switched off, and their Roles, without what all begin with."""

OFF = "audit: {keep: 0s}\nobserved: {keep: 0s}\npods: {keep: 0s}\nrevisions: {keep: 0}\n"


@pytest.mark.parametrize("way", ["cronjob", "deployment"])
def test_without_the_roles_of_what_is_off_no_request_is_refused(
    scene: Scene, programs: Programs, tmp_path: Path, way: str
) -> None:
    ours = leaving_out(tmp_path / "ours", f"node-maintenance-({'|'.join(KEPT)})", way)
    left_out = {one["metadata"]["name"] for one in built(way) if one not in built(ours)}
    assert left_out == {f"node-maintenance-{name}" for name in KEPT}
    began = datetime.now(UTC)
    programs.configure(f"{SETTINGS}{OFF}".replace("mode: Enforce", "mode: Observe"))
    node = scene.node(0)
    scene.workload("web", node)
    scene.node(1)
    scene.condition_tells(node)
    with installed(scene, ours) as kubeconfig:
        if way == "deployment":
            serving = programs.start("serve", "--every", "1s", kubeconfig=kubeconfig)
            serving.wait_for("node")
            programs.configure(f"{SETTINGS}{OFF}")
            serving.wait_for("evicted")
            assert programs.run("hold", node, "--reason", "test").code == 0
            serving.wait_for("person")
            assert programs.run("resume", node).code == 0
            scene.condition_silent(node)
            serving.wait_for("case")
            assert serving.terminate().code == 0
        else:
            assert programs.run("sweep", kubeconfig=kubeconfig).code == 0
            programs.configure(f"{SETTINGS}{OFF}")
            assert programs.sweep("--for", "30s", kubeconfig=kubeconfig).code == 0
            scene.condition_silent(node)
            assert programs.sweep("--for", "30s", kubeconfig=kubeconfig).code == 0
        wait_for("the end of the case", lambda: scene.is_untouched(node))

    entries = used(scene.asked(since=began))
    assert {one.code for one in entries if one.subresource == "eviction"} == {201}
    assert [one for one in entries if one.code in (401, 403)] == []
    assert [name for name in left_out if scene.api.find("configmaps", name, NAMESPACE) is not None] == []


def test_publish_grants_what_publishing_asks_and_nothing_else(scene: Scene, programs: Programs) -> None:
    programs.configure(f"{SETTINGS}publish: [drainsafe, node-conditions, nodemaintenances]\nhistory: 0s\n")
    node = scene.node()
    scene.workload("web", node)
    with installed(scene, "crd", "base", "publish") as kubeconfig:
        scene.condition_tells(node)
        for _ in range(2):
            done = programs.sweep("--for", "30s", kubeconfig=kubeconfig)
            assert done.code == 0, done.err
        scene.condition_silent(node)
        for _ in range(2):
            done = programs.sweep("--for", "30s", kubeconfig=kubeconfig)
            assert done.code == 0, done.err

        assert scene.api.list("nodemaintenances") == []
        compare(scene, "publish", "base")


def test_escalation_grants_what_escalating_asks_and_nothing_else(scene: Scene, programs: Programs) -> None:
    programs.configure(
        f"{SETTINGS}drain: {{restartSingletons: true, escalation: {{deleteBeforeDeadline: true}}}}\n"
    )
    claim = {
        "metadata": {"name": "shared", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": "shared",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volume = {
        "metadata": {"name": "shared"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
            "storageClassName": "",
            "claimRef": {"name": "shared", "namespace": "default"},
            "nfs": {"server": "127.0.0.1", "path": "/"},
        },
    }
    scene.api.create("persistentvolumes", volume)
    scene.api.create("persistentvolumeclaims", claim)
    node = scene.node(0)
    mounted = [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}]
    scene.deploy(deployment("web", 1, volumes=mounted))
    # It is deleted 10 seconds before the deadline, so a slow machine is in time, too.
    scene.workload("held", node, grace=10)
    for app in ("web", "held"):
        cover(scene, app)
    scene.node(1)
    with installed(scene, "base", "escalation") as kubeconfig:
        scene.condition_tells(node, minutes=0.35)
        done = programs.sweep("--for", "60s", kubeconfig=kubeconfig)

        assert done.code == 0, done.err
        compare(scene, "escalation", "base")
