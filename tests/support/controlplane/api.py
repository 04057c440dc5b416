"""A tiny client of the Kubernetes API for tests: plain dicts in, plain dicts out, safe in threads."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import urllib3
import yaml

from tests.support.controlplane.processes import wait_for

Object = dict[str, Any]

CLUSTER_WIDE = {
    "nodes": "api/v1",
    "namespaces": "api/v1",
    "persistentvolumes": "api/v1",
    "priorityclasses": "apis/scheduling.k8s.io/v1",
    "prioritylevelconfigurations": "apis/flowcontrol.apiserver.k8s.io/v1",
    "clusterroles": "apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "apis/rbac.authorization.k8s.io/v1",
    "volumeattachments": "apis/storage.k8s.io/v1",
    "customresourcedefinitions": "apis/apiextensions.k8s.io/v1",
    "nodemaintenances": "apis/node-maintenance.dev/v1alpha1",
}
NAMESPACED = {
    "pods": "api/v1",
    "configmaps": "api/v1",
    "secrets": "api/v1",
    "services": "api/v1",
    "resourcequotas": "api/v1",
    "serviceaccounts": "api/v1",
    "events": "api/v1",
    "persistentvolumeclaims": "api/v1",
    "replicationcontrollers": "api/v1",
    "deployments": "apis/apps/v1",
    "replicasets": "apis/apps/v1",
    "statefulsets": "apis/apps/v1",
    "daemonsets": "apis/apps/v1",
    "jobs": "apis/batch/v1",
    "cronjobs": "apis/batch/v1",
    "poddisruptionbudgets": "apis/policy/v1",
    "leases": "apis/coordination.k8s.io/v1",
    "roles": "apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "apis/rbac.authorization.k8s.io/v1",
}

_PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_ONLY_METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class ApiError(Exception):
    """The server's answer was a refusal."""

    def __init__(self, status: int, body: Object) -> None:
        super().__init__(f"{status} {body.get('reason', '')}: {body.get('message', '')}")
        self.status = status
        self.reason = str(body.get("reason", ""))
        self.body = body


class Api:
    """One identity at one API server.

    Resources are plural names (`pods`). Where no namespace is given it is `default`, but a list is of all.
    """

    def __init__(
        self,
        kubeconfig: Path | str,
        *,
        user_agent: str = "tests",
        connections: int = 48,
        impersonate: tuple[str, ...] = (),
    ) -> None:
        """`impersonate`: a user and its groups, as whom the server is to see the kubeconfig's own user."""
        config = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
        self.url: str = config["clusters"][0]["cluster"]["server"]
        token = config["users"][0]["user"]["token"]
        headers = urllib3.HTTPHeaderDict({"Authorization": f"Bearer {token}", "User-Agent": user_agent})
        for user in impersonate[:1]:
            headers["Impersonate-User"] = user
        for group in impersonate[1:]:
            headers.add("Impersonate-Group", group)
        self.pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=connections,
            ca_certs=config["clusters"][0]["cluster"]["certificate-authority"],
            headers=headers,
            retries=False,
            timeout=urllib3.Timeout(30),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all connections."""
        self.pool.clear()

    def get(self, resource: str, name: str, namespace: str | None = None) -> Object:
        return self.request("GET", path_of(resource, name, namespace))

    def find(self, resource: str, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None if there is none of that name."""
        try:
            return self.get(resource, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        at_least: int | None = None,
    ) -> list[Object]:
        """Of one namespace, or of all; only `metadata` of each if that is enough.

        With `at_least` from the server's cache, once that has come to this revision; ApiError 504 if it is
        late.
        """
        path = f"{_version(resource)}/{resource}" if namespace is None else path_of(resource, None, namespace)
        query = {"labelSelector": labels, "fieldSelector": fields}
        if at_least is not None:
            query |= {"resourceVersion": str(at_least), "resourceVersionMatch": "NotOlderThan"}
        accept = _ONLY_METADATA if metadata_only else "application/json"
        answer = self.request("GET", path, query=query, headers={"Accept": accept})
        # An empty list of metadata is null.
        return answer["items"] or []

    def has_cached(self, resource: str, revision: int) -> bool:
        """Whether the server answers from a cache that has come to this revision; it waits some seconds."""
        try:
            self.list(resource, metadata_only=True, at_least=revision)
        except ApiError as error:
            if error.status != 504:
                raise
            return False
        return True

    def create(self, resource: str, body: Object) -> Object:
        """In the namespace that its metadata names."""
        return self.request("POST", path_of(resource, None, body["metadata"].get("namespace")), body)

    def patch(
        self,
        resource: str,
        name: str,
        body: object,
        namespace: str | None = None,
        *,
        kind: str = "merge",
        subresource: str | None = None,
    ) -> Object:
        """`kind`: merge, strategic, json or apply."""
        headers = {"Content-Type": _PATCHES[kind]}
        query = {"fieldManager": "tests", "force": "true"} if kind == "apply" else {}
        return self.request(
            "PATCH", path_of(resource, name, namespace, subresource), body, query=query, headers=headers
        )

    def delete(
        self, resource: str, name: str, namespace: str | None = None, *, grace: int | None = None
    ) -> Object:
        """`grace` in seconds; None is the object's own."""
        body = None if grace is None else {"gracePeriodSeconds": grace, "propagationPolicy": "Background"}
        return self.request("DELETE", path_of(resource, name, namespace), body)

    def delete_strays(self, pods: Iterable[Object], mark: str) -> bool:
        """Delete the pods of a test before, which have another `made`; return whether there was any.

        A controller that is late makes one after the cleaning, and the garbage collector may be late, too.
        """
        strays = [
            one["metadata"] for one in pods if one["metadata"].get("annotations", {}).get("made") != mark
        ]
        for stray in strays:
            # What makes pods goes first, so that it makes no other.
            makers = [one["name"] for one in stray.get("ownerReferences", []) if one["kind"] == "ReplicaSet"]
            for resource, name in (*(("replicasets", maker) for maker in makers), ("pods", stray["name"])):
                try:
                    self.delete(resource, name, stray["namespace"], grace=0)
                except ApiError as error:
                    if error.status != 404:
                        raise
        return bool(strays)

    def pods_in_brief(self, labels: str) -> str:
        """Each pod with these labels: its name, phase, node, owner, and what it waits for."""
        return "; ".join(map(_brief, self.list("pods", labels=labels))) or "no pod"

    def evict(self, pod: str, namespace: str | None = None) -> Object:
        """ApiError 429 if a budget does not allow it now."""
        namespace = namespace or "default"
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        return self.request("POST", path_of("pods", pod, namespace, "eviction"), eviction)

    def create_namespace(self, name: str) -> Object:
        """Ready for pods: its default ServiceAccount has come."""
        made = self.create("namespaces", {"metadata": {"name": name}})
        wait_for(f"ServiceAccount default in {name}", lambda: self.find("serviceaccounts", "default", name))
        return made

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str | None] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Object:
        """Any request; the answer's JSON, or ApiError."""
        asked = urlencode({key: value for key, value in (query or {}).items() if value is not None})
        url = f"{self.url}/{path}" + (f"?{asked}" if asked else "")
        sent = urllib3.HTTPHeaderDict(self.pool.headers)
        sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        payload = None if body is None else json.dumps(body).encode()
        response = self.pool.request(method, url, body=payload, headers=sent)
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        answer: Object = json.loads(response.data) if is_json else {"message": response.data.decode()}
        if response.status >= 400:
            raise ApiError(response.status, answer)
        return answer


def _brief(pod: Object) -> str:
    metadata, status = pod["metadata"], pod["status"]
    waits = [
        f"{one['type']}={one['status']} {one.get('message', '')}".strip()
        for one in status.get("conditions", [])
        if one["status"] != "True"
    ]
    owners = [f"{one['kind']} {one['name']}" for one in metadata.get("ownerReferences", [])]
    leaves = ["terminates"] if "deletionTimestamp" in metadata else []
    place = pod["spec"].get("nodeName", "no node")
    return ", ".join([metadata["name"], str(status.get("phase")), place, *owners, *leaves, *waits])


def path_of(
    resource: str, name: str | None, namespace: str | None = None, subresource: str | None = None
) -> str:
    """`api/v1/namespaces/default/pods/a/eviction`."""
    parts = [_version(resource)]
    if resource in NAMESPACED:
        parts += ["namespaces", namespace or "default"]
    parts += [part for part in (resource, name, subresource) if part]
    return "/".join(parts)


def _version(resource: str) -> str:
    return CLUSTER_WIDE.get(resource) or NAMESPACED[resource]
