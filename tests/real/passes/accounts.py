"""Accounts with the permissions of a person, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real.passes.processes import Done
from tests.real.passes.scene import Object, Scene
from tests.support.controlplane.processes import wait_for

_RBAC = "apis/rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"


@contextmanager
def account(scene: Scene, role: str, rules: list[Object] | None = None) -> Iterator[Path]:
    """Make an account with a ClusterRole of this name, which is made if it has `rules`; its kubeconfig."""
    metadata = {"name": role, "namespace": "default"}
    scene.api.create("serviceaccounts", {"metadata": metadata})
    made = {
        "clusterrolebindings": {
            "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        }
    }
    if rules is not None:
        made["clusterroles"] = {"rules": rules}
    for kind, body in made.items():
        scene.api.request("POST", f"{_RBAC}/{kind}", {"metadata": {"name": role}, **body})
    try:
        yield scene.controlplane.kubeconfig_for(role, "default")
    finally:
        for kind in made:
            scene.api.request("DELETE", f"{_RBAC}/{kind}/{role}")


def once_permitted(run: Callable[[], Done]) -> Done:
    """Run a command until the server knows the rights, which takes it a moment."""

    def ran() -> Done | None:
        done = run()
        return None if done.code == 3 else done

    return wait_for("the rights", ran)
