"""Resets a control plane: deletes everything that tests created, without grace periods.

Objects are deleted in etcd, many at once. Through the API each costs a request, finalizers one more, and the
controllers make some of them again meanwhile. Their watches report the deletions like any others.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from tests.support.controlplane.api import CLUSTER_WIDE, NAMESPACED, Api, ApiError, Object
from tests.support.controlplane.configuration import KWOK_NODE, READY_AFTER
from tests.support.controlplane.processes import REGISTRY, Etcd, wait_for
from tests.support.controlplane.workloads import last_of, pod

# What makes other objects goes first. A controller that sees a pod go before the ReplicaSet replaces the pod,
# and the next test finds one more pod of its app.
_MAKERS = (("deployments", "cronjobs"), ("replicasets", "statefulsets", "daemonsets", "jobs"))
# Those whose controllers say what they have seen.
_TELLING = ("deployments", "replicasets")
# What the API calls the kinds that have another name in etcd.
_RESOURCES = {"minions": "nodes"}
_NODES, _PODS = f"{REGISTRY}minions/", f"{REGISTRY}pods/"
_DEFINITIONS = f"{REGISTRY}apiextensions.k8s.io/customresourcedefinitions/"
_SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
# What the API server and the controllers make by themselves, some of it a moment after they are ready.
_LATE = (
    "/registry/configmaps/kube-system/extension-apiserver-authentication",
    "/registry/configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking",
    "/registry/leases/kube-system/apiserver-",
    "/registry/services/endpoints/default/kubernetes",
    "/registry/endpointslices/default/kubernetes",
)
_SERVERS_OWN = (
    "apiregistration.k8s.io",
    "flowschemas",
    "masterleases",
    "peerserverleases",
    "prioritylevelconfigurations",
    "ranges",
    "servicecidrs",
)
_FIRST = (
    *(f"/registry/serviceaccounts/{namespace}/default" for namespace in _SYSTEM_NAMESPACES),
    *(f"/registry/configmaps/{namespace}/kube-root-ca.crt" for namespace in _SYSTEM_NAMESPACES),
    "/registry/services/specs/default/kubernetes",
    "/registry/priorityclasses/system-node-critical",
)


def first_keys(etcd: Etcd) -> frozenset[str]:
    """The keys of a new cluster, once its controllers have made what every cluster has."""

    def complete() -> frozenset[str] | None:
        found = etcd.all_keys()
        return found if found.issuperset(_FIRST) else None

    return wait_for("the first objects of a cluster", complete, seconds=60)


def clean(api: Api, etcd: Etcd, first: frozenset[str]) -> None:
    """Delete everything that did not exist at `first`; TimeoutError if something comes back.

    Returns when the API server's own caches have seen it: a list that accepts any version is empty, too.
    """
    deleted: dict[str, int] = {}

    def nothing_left() -> bool:
        ours = {key for key in etcd.all_keys() if key not in first and not _is_servers(key)}
        # The server has to stop serving a definition's kind, so it is asked to delete the definition. Nothing
        # holds it up, because all objects of the kind have gone by then, whatever finalizers they had.
        definitions = {key for key in ours if key.startswith(_DEFINITIONS)}
        rest = ours - definitions
        for makers in _MAKERS:
            made = {key for key in ours if key.startswith(tuple(f"{REGISTRY}{one}/" for one in makers))}
            for kind, revision in etcd.delete(made).items():
                if kind in _TELLING:
                    deleted[kind] = _await_controller(api, etcd, kind)
                else:
                    deleted[kind] = revision
                    _await_cache(api, kind, revision)
            rest -= made
        nodes = {key for key in rest if key.startswith(_NODES)}
        deleted.update(etcd.delete(rest - nodes))
        if any(key.startswith(_PODS) for key in rest):
            deleted.update(_await_kwok(api, etcd, (key.removeprefix(_NODES) for key in sorted(nodes))))
        deleted.update(etcd.delete(nodes))
        for key in definitions:
            _delete_definition(api, key.removeprefix(_DEFINITIONS))
        return not ours

    wait_for("clean cluster", nothing_left, seconds=120)
    for kind, revision in deleted.items():
        _await_cache(api, kind, revision)


def _await_cache(api: Api, kind: str, revision: int) -> None:
    """Return when the API server's cache of a kind has come to this revision."""
    resource = _RESOURCES.get(kind, kind)
    if resource in CLUSTER_WIDE or resource in NAMESPACED:
        wait_for(f"the cache of {resource}", lambda: api.has_cached(resource, revision))


def _await_controller(api: Api, etcd: Etcd, kind: str) -> int:
    """Return when the controller of this kind has seen what was deleted: it sees one that comes later.

    What comes later is deleted then, at the revision that is returned.
    """
    name = api.create(kind, last_of(kind))["metadata"]["name"]

    def seen() -> bool:
        return bool(api.get(kind, name).get("status", {}).get("observedGeneration"))

    wait_for(f"the controller of {kind}", seen, seconds=60, every=0.005)
    return etcd.delete({f"{REGISTRY}{kind}/default/{name}"})[kind]


def _await_kwok(api: Api, etcd: Etcd, nodes: Iterable[str]) -> dict[str, int]:
    """Return when kwok has seen the pods go, while it still knows one of the nodes.

    It forgets what it has planned for a pod that goes, but not if it sees the pod's node go first. Then it
    deletes the pod by its name a moment later, in the next test. It sees pods in the order of their changes:
    one that comes later is deleted then, at the revision that is returned.
    """
    key, value = KWOK_NODE
    found = (api.find("nodes", name) for name in nodes)
    names = (one["metadata"]["name"] for one in found if one and _annotations(one).get(key) == value)
    if (node := next(names, None)) is None:
        return {}
    last = pod(f"last-{uuid4().hex[:8]}", node_name=node, annotations={READY_AFTER: "0s"})
    name = last["metadata"]["name"]

    def seen() -> bool:
        try:
            return bool((api.find("pods", name) or api.create("pods", last))["status"]["phase"] == "Running")
        except ApiError as error:
            # What a test has made to refuse pods is gone, and the API server may not know yet.
            if error.status not in (403, 422, 500):
                raise
            return False

    wait_for("the last pod in kwok", seen, seconds=60, every=0.005)
    return etcd.delete({f"{_PODS}default/{name}"})


def _annotations(found: Object) -> Object:
    annotations: Object = found["metadata"].get("annotations") or {}
    return annotations


def _is_servers(key: str) -> bool:
    folder = key.removeprefix(REGISTRY).split("/", 1)[0]
    return folder in _SERVERS_OWN or key.startswith(_LATE)


def _delete_definition(api: Api, name: str) -> None:
    try:
        api.delete("customresourcedefinitions", name, grace=0)
    except ApiError as error:
        # Gone meanwhile, or changed by the server: the next look shows it.
        if error.status not in (404, 409):
            raise
