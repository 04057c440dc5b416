"""The manifests on a real API server, and tokens such as the kubelet mounts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.support.controlplane.api import Api, ApiError, Object
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

K8S = Path(__file__).parents[3] / "k8s"
AGENT_NAMESPACE = AGENT = "node-maintenance-agent"
DELETES = "{$patch: delete, kind: Role, metadata: {name: any}}"
"""The patch by which docs/install.md leaves out whatever its target names."""


def built(folder: str, program: Path | None = None) -> list[Object]:
    """What kustomize makes of a folder of k8s/, or of one with an absolute path; the caller may change it.

    It runs by this kubectl or that of the path.
    """
    return deepcopy(_built(folder, program or shutil.which("kubectl")))


@cache
def _built(folder: str, program: Path | str | None) -> list[Object]:
    if program is None:
        pytest.skip("no kubectl on the path to build the manifests with")
    done = subprocess.run(
        [program, "kustomize", str(K8S / folder)],
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    return list(yaml.safe_load_all(done.stdout))


def leaving_out(folder: Path, pattern: str, of: str) -> str:
    """Make a kustomization of a folder of k8s/ without what has these names; return what `built` takes."""
    folder.mkdir()
    made = {
        "resources": [os.path.relpath(K8S / of, folder)],
        "patches": [{"target": {"name": pattern}, "patch": DELETES}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(made), encoding="utf-8")
    return str(folder)


def kubectl(cluster: ControlPlane, *arguments: str) -> str:
    """Run kubectl as admin; its complaint is the error's text."""
    done = subprocess.run(
        [cluster.kubectl, "--kubeconfig", cluster.kubeconfig, *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # The server warns of a violated pod security standard, and of a deprecated field.
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout


@contextmanager
def applied_by_kubectl(cluster: ControlPlane, name: str) -> Iterator[str]:
    """Apply one folder as a person does; take all of it away in the end, as it would shut out later tests."""
    try:
        yield kubectl(cluster, "apply", "-k", str(K8S / name))
    finally:
        kubectl(cluster, "delete", "-k", str(K8S / name), "--ignore-not-found", "--wait=false")


@contextmanager
def applied(cluster: ControlPlane, name: str) -> Iterator[None]:
    """Have the objects of one folder, as `kubectl apply -k` makes them; that it does is a test of its own.

    In the end, what no cleaning takes away is deleted, and what would shut out later tests until then.
    """
    objects = built(name, cluster.kubectl)
    try:
        for made in objects:
            text = json.dumps(made)
            made["metadata"].setdefault("annotations", {})[_AS_KUBECTL] = f"{text}\n"
            headers = {"Content-Type": "application/apply-patch+yaml"}
            query = {"fieldManager": "tests", "force": "true"}
            cluster.api.request("PATCH", _path(made), made, query=query, headers=headers)
        yield
    finally:
        for made in objects:
            if made["apiVersion"].startswith(("admissionregistration.", "flowcontrol.")):
                with suppress(ApiError):
                    cluster.api.request("DELETE", _path(made))


_AS_KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation without which `kubectl apply` warns of an object that is there."""


def _path(made: Object) -> str:
    """Return where the API server has an object."""
    kind, metadata = made["kind"].lower(), made["metadata"]
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("s") else f"{kind}s"
    version = made["apiVersion"]
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{'apis' if '/' in version else 'api'}/{version}{within}/{plural}/{metadata['name']}"


def ca_file(cluster: ControlPlane) -> str:
    """The certificate authority of the API server."""
    config = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    return str(config["clusters"][0]["cluster"]["certificate-authority"])


def token_on(cluster: ControlPlane, node: str) -> str:
    """A token of the agent's account bound to a pod on the node, so that it carries the node's name."""
    name = f"agent-{node}"
    if cluster.api.find("pods", name, AGENT_NAMESPACE) is None:
        pod: Object = {
            "metadata": {"name": name, "namespace": AGENT_NAMESPACE},
            "spec": {
                "nodeName": node,
                "serviceAccountName": AGENT,
                "containers": [{"name": "agent", "image": "none"}],
                "tolerations": [{"operator": "Exists"}],
            },
        }
        wait_for("account", lambda: cluster.api.find("serviceaccounts", AGENT, AGENT_NAMESPACE))
        cluster.api.create("pods", pod)
    uid = cluster.api.get("pods", name, AGENT_NAMESPACE)["metadata"]["uid"]
    return token(cluster, {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid})


def token(cluster: ControlPlane, bound_to: Object | None = None) -> str:
    """A token of the agent's account."""
    spec: Object = {"expirationSeconds": 3600}
    if bound_to is not None:
        spec["boundObjectRef"] = bound_to
    path = f"api/v1/namespaces/{AGENT_NAMESPACE}/serviceaccounts/{AGENT}/token"
    return str(cluster.api.request("POST", path, {"spec": spec})["status"]["token"])


def api_with(cluster: ControlPlane, token: str, folder: Path) -> Api:
    """The API server as the holder of a token sees it."""
    path = folder / "kubeconfig"
    config = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": token}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return Api(path, user_agent="tests-agent")


def policy_in_force(cluster: ControlPlane, node: str) -> None:
    """Return once the server enforces the agent's policy, which it takes a moment to compile."""
    unbound = token(cluster)

    def refused() -> bool:
        headers = {"Authorization": f"Bearer {unbound}", "Content-Type": "application/merge-patch+json"}
        try:
            cluster.api.request("PATCH", f"api/v1/nodes/{node}", {"metadata": {}}, headers=headers)
        except ApiError as error:
            return error.status in (403, 422) and "ValidatingAdmissionPolicy" in str(error)
        return False

    wait_for("admission policy", refused)
