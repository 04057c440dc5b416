"""A control plane as if new: everything that tests made is deleted, without waiting for any grace."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.waiting import wait_for

Object = dict[str, Any]

# Owners first, so that they don't make anew what follows.
RESOURCES = (
    "cronjobs",
    "jobs",
    "daemonsets",
    "deployments",
    "statefulsets",
    "replicasets",
    "replicationcontrollers",
    "poddisruptionbudgets",
    "pods",
    "persistentvolumeclaims",
    "persistentvolumes",
    "nodes",
    "leases",
    "configmaps",
    "secrets",
    "services",
    "resourcequotas",
    "volumeattachments",
    "serviceaccounts",
    "rolebindings",
    "roles",
    "clusterrolebindings",
    "clusterroles",
    "priorityclasses",
    "customresourcedefinitions",
    "events",
    "namespaces",
)
_SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_CONFIGMAPS = (
    "kube-root-ca.crt",
    "extension-apiserver-authentication",
    "kube-apiserver-legacy-service-account-token-tracking",
)


def clean(api: Api) -> None:
    """Returns when all is gone; TimeoutError if something comes back."""
    with ThreadPoolExecutor(max_workers=16) as threads:

        def nothing_left() -> bool:
            listings = list(threads.map(partial(api.list, metadata_only=True), RESOURCES))
            ours = [
                (resource, each["metadata"])
                for resource, listing in zip(RESOURCES, listings, strict=True)
                for each in listing
                if not _is_system(resource, each["metadata"])
            ]
            list(threads.map(lambda found: _remove(api, *found), ours))
            inhabited = {metadata.get("namespace") for _, metadata in ours}
            for resource, metadata in ours:
                if resource == "namespaces" and metadata["name"] not in inhabited:
                    _finalize(api, metadata)
            return not ours

        wait_for("clean cluster", nothing_left, seconds=120)


def _remove(api: Api, resource: str, metadata: Object) -> None:
    name, namespace = metadata["name"], metadata.get("namespace")
    try:
        # A definition's own finalizer deletes its objects, once nothing holds them any more.
        if resource == "customresourcedefinitions":
            _release(api, api.get(resource, name)["spec"])
        if metadata.get("finalizers") and resource not in ("namespaces", "customresourcedefinitions"):
            api.patch(resource, name, {"metadata": {"finalizers": None}}, namespace)
        if resource == "pods" or "deletionTimestamp" not in metadata:
            api.delete(resource, name, namespace, grace=0)
    except ApiError as error:
        # Gone meanwhile, or changed by a controller: the next look tells.
        if error.status not in (404, 409):
            raise


def _release(api: Api, spec: Object) -> None:
    """Take the finalizers from all objects of a definition's kind."""
    plural = spec["names"]["plural"]
    kind = f"apis/{spec['group']}/{spec['versions'][0]['name']}"
    headers = {"Content-Type": "application/merge-patch+json"}
    try:
        for metadata in [one["metadata"] for one in api.request("GET", f"{kind}/{plural}")["items"]]:
            if metadata.get("finalizers"):
                place = f"{kind}/namespaces/{metadata['namespace']}" if "namespace" in metadata else kind
                body = {"metadata": {"finalizers": None}}
                api.request("PATCH", f"{place}/{plural}/{metadata['name']}", body, headers=headers)
    except ApiError as error:
        # Gone, or never served; or its storage still begins.
        if error.status not in (404, 409, 429):
            raise


def _finalize(api: Api, metadata: Object) -> None:
    # The session's control plane has nobody else for it (see tests/conftest.py).
    if "deletionTimestamp" not in metadata:
        return
    body = {"metadata": {"name": metadata["name"]}, "spec": {"finalizers": []}}
    try:
        api.request("PUT", f"api/v1/namespaces/{metadata['name']}/finalize", body)
    except ApiError as error:
        if error.status not in (404, 409):
            raise


def _is_system(resource: str, metadata: Object) -> bool:
    name: str = metadata["name"]
    labels = metadata.get("labels", {})
    if "kubernetes.io/bootstrapping" in labels or name.startswith("system:"):
        return True
    if metadata.get("namespace", "default") not in _SYSTEM_NAMESPACES:
        return False
    match resource:
        case "namespaces":
            return name in _SYSTEM_NAMESPACES
        case "configmaps":
            return name in _SYSTEM_CONFIGMAPS
        case "leases":
            return "apiserver.kubernetes.io/identity" in labels
        case "serviceaccounts":
            return name == "default"
        case "services":
            return name == "kubernetes"
        case "priorityclasses":
            return name.startswith("system-")
        case _:
            return False
