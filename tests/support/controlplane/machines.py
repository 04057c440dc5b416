"""Machines behind nodes, of Karpenter, Cluster API and OpenShift, and what their controllers do with them.

The kinds are real ones of the API server; the controllers are one class that moves on request, and
does what matters to whoever replaces a machine: a deleted one goes with its node; a set that lacks one makes
it, with a Ready node; a set that has one too many deletes the marked one first; a deployment puts its set's
number back.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from reconciler.model.machine import (
    CLUSTER_API,
    CLUSTER_API_MACHINE,
    CLUSTER_API_NAMESPACE,
    KARPENTER,
    OPENSHIFT,
    OPENSHIFT_MACHINE,
)
from reconciler.model.node import KARPENTER_LABEL
from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.fill import REGION, condition, node, patch_conditions
from tests.support.controlplane.processes import wait_for

Object = dict[str, Any]

CRDS = Path(__file__).parent / "crds"
NAMESPACE = "machines"
_FINALIZER = "tests.example/machine"
_GROUPS = {
    KARPENTER: ("karpenter.sh", "v1"),
    CLUSTER_API: ("cluster.x-k8s.io", "v1beta2"),
    OPENSHIFT: ("machine.openshift.io", "v1beta1"),
}
_MARKS = {CLUSTER_API: "cluster.x-k8s.io/delete-machine", OPENSHIFT: "machine.openshift.io/delete-machine"}
_PLURALS = {
    KARPENTER: ("nodeclaims",),
    CLUSTER_API: ("machinedeployments", "machinesets", "machines"),
    OPENSHIFT: ("machinesets", "machines"),
}
_CONTROL_PLANES = {CLUSTER_API: "KubeadmControlPlane", OPENSHIFT: "ControlPlaneMachineSet"}


def crd(name: str) -> Object:
    """The definition `machines.cluster.x-k8s.io`, say."""
    return dict(yaml.safe_load((CRDS / f"{name}.yaml").read_text(encoding="utf-8")))


def machine_name(node_name: str) -> str:
    """What the machine behind a node is called: never as the node is."""
    return f"m-{node_name}"


def install(api: Api, *names: str) -> None:
    """Install these definitions, of all providers where none is named, and wait until they are served."""
    there = {
        one["metadata"]["name"]
        for one in api.list("customresourcedefinitions", metadata_only=True)
        if "deletionTimestamp" not in one["metadata"]
    }
    for found in [crd(name) for name in names or sorted(path.stem for path in CRDS.glob("*.yaml"))]:
        if found["metadata"]["name"] in there:
            continue
        wait_for(f"the definition {found['metadata']['name']}", partial(_defined, api, found))
        spec = found["spec"]
        for version in spec["versions"]:
            path = f"apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
            wait_for(f"the kind {path}", partial(_served, api, path))


def _defined(api: Api, found: Object) -> bool:
    there = api.find("customresourcedefinitions", found["metadata"]["name"])
    if there is None:
        with suppress(ApiError):
            api.create("customresourcedefinitions", found)
    return there is not None and "deletionTimestamp" not in there["metadata"]


def _served(api: Api, path: str) -> bool:
    try:
        return "items" in api.request("GET", path)
    except ApiError as error:
        # Not there yet; or there, and its storage still begins (429).
        if error.status not in (404, 429):
            raise
        return False


class MachineWorld:
    """The machines of a cluster, and their controllers, which do one round at each `step`.

    `ready` says whether the nodes that they make are Ready at once (else `get_ready` makes them so), `frozen`
    that they do nothing, as where a cloud has no VM left.
    """

    def __init__(self, api: Api, *, providers: Collection[str] = (*_GROUPS,)) -> None:
        self.api = api
        self.ready = True
        self.frozen = False
        self._numbers = itertools.count(1)
        self._makers = tuple(providers)
        groups = {_GROUPS[provider][0] for provider in providers}
        install(api, *sorted(one.stem for one in CRDS.glob("*.yaml") if one.stem.partition(".")[2] in groups))
        if self.api.find("namespaces", NAMESPACE) is None:
            self.api.create("namespaces", {"metadata": {"name": NAMESPACE}})

    # What the tests say.

    def make(
        self,
        node_names: Collection[str],
        *,
        provider: str = CLUSTER_API,
        pool: str = "workers",
        deployment: bool = True,
        autoscaled: bool = False,
        control_plane: bool = False,
    ) -> str:
        """Let these nodes have machines in a pool of their own; its name, as the reconciler prints it.

        A node that isn't there is made, Ready. For Cluster API the pool is a MachineDeployment with one
        MachineSet, or without `deployment` that set alone; for OpenShift a MachineSet; for Karpenter a
        NodePool, of which there is only the name. Those of a `control_plane` belong to what makes control
        planes. `machine_name` says what the machines are called.
        """
        for name in node_names:
            if self.api.find("nodes", name) is None:
                self._node(name, pool)
        if provider == KARPENTER:
            for name in node_names:
                self._claim(name, pool)
            return pool
        if control_plane:
            owner = _reference(
                f"{_GROUPS[provider][0]}/v1", _CONTROL_PLANES[provider], pool, "uid-of-its-owner"
            )
        else:
            owner = self._set(provider, pool, len(node_names), deployment=deployment, autoscaled=autoscaled)
        for name in node_names:
            self._machine(provider, name, owner)
        self._tell(provider)
        return pool

    def clear(self) -> None:
        """Delete every machine and node, but not the CRDs, whose deletion and creation take seconds."""
        for provider in self._makers:
            for plural in _PLURALS[provider]:
                found = self.all_of(provider, plural)
                for one in found:
                    if one["metadata"].get("finalizers"):
                        self.patch(
                            provider, plural, one["metadata"]["name"], {"metadata": {"finalizers": None}}
                        )
                if found:
                    self.api.request("DELETE", self.path(provider, plural))
        self.api.request("DELETE", "api/v1/nodes")

    def step(self) -> bool:
        """Let each controller look once; return whether one of them did something."""
        if self.frozen:
            return False
        done = [self._bury(provider) for provider in self._makers]
        done += [self._keep(provider) for provider in self._makers if provider in _MARKS]
        for provider in self._makers:
            if provider in _MARKS:
                self._tell(provider)
        return any(done)

    def settle(self) -> None:
        """Step until nothing changes."""
        wait_for("machines at rest", lambda: not self.step())

    def get_ready(self, name: str) -> None:
        """Let a node be Ready."""
        patch_conditions(self.api, name, condition("Ready", "True", "KubeletReady", "kubelet is ready"))

    def machine(self, name: str, provider: str = CLUSTER_API) -> Object | None:
        """The Machine or NodeClaim of that name."""
        return next((one for one in self.machines(provider) if one["metadata"]["name"] == name), None)

    def machines(self, provider: str = CLUSTER_API) -> list[Object]:
        """Every Machine or NodeClaim of a provider."""
        return self.all_of(provider, "nodeclaims" if provider == KARPENTER else "machines")

    def all_of(self, provider: str, plural: str) -> list[Object]:
        """Every object of one kind of a provider."""
        return list(self.api.request("GET", self.path(provider, plural))["items"])

    def wanted(self, pool: str = "workers", provider: str = CLUSTER_API) -> int:
        """How many machines a pool is to have: what its MachineDeployment, else its MachineSet says."""
        plural = self._topmost(provider, pool)
        return int(self.api.request("GET", self.path(provider, plural, pool))["spec"]["replicas"])

    def raise_to(self, number: int, provider: str = CLUSTER_API, pool: str = "workers") -> None:
        """Change the number of a pool, as another client does."""
        plural = self._topmost(provider, pool)
        self.patch(provider, plural, pool, {"spec": {"replicas": number}})

    def patch(self, provider: str, plural: str, name: str, body: Object, subresource: str = "") -> Object:
        """Patch an object, as anybody may; with `subresource` its status or scale."""
        path = "/".join(part for part in (self.path(provider, plural, name), subresource) if part)
        return self.api.request("PATCH", path, body, headers={"Content-Type": "application/merge-patch+json"})

    def delete(self, provider: str, name: str) -> None:
        """Delete a machine, as a person would; it goes at the next step."""
        plural = "nodeclaims" if provider == KARPENTER else "machines"
        self.api.request("DELETE", self.path(provider, plural, name))

    @staticmethod
    def path(provider: str, plural: str, name: str = "") -> str:
        """`apis/cluster.x-k8s.io/v1beta2/namespaces/machines/machines/a`."""
        group, version = _GROUPS[provider]
        place = "" if provider == KARPENTER else f"/namespaces/{NAMESPACE}"
        return f"apis/{group}/{version}{place}/{plural}" + (f"/{name}" if name else "")

    def _topmost(self, provider: str, pool: str) -> str:
        """Of which kind a pool is, in the plural."""
        deployments = self.all_of(provider, "machinedeployments") if provider == CLUSTER_API else []
        named = any(one["metadata"]["name"] == pool for one in deployments)
        return "machinedeployments" if named else "machinesets"

    # What the controllers do.

    def _bury(self, provider: str) -> bool:
        """Let every deleted machine go, its node first."""
        going = [one for one in self.machines(provider) if "deletionTimestamp" in one["metadata"]]
        plural = "nodeclaims" if provider == KARPENTER else "machines"
        for one in going:
            status = one.get("status", {})
            name = status.get("nodeName") or status.get("nodeRef", {}).get("name")
            if name and self.api.find("nodes", name) is not None:
                self.api.delete("nodes", name)
            self.patch(provider, plural, one["metadata"]["name"], {"metadata": {"finalizers": None}})
        return bool(going)

    def _keep(self, provider: str) -> bool:
        """Let every set have as many machines as it wants, and want as many as its deployment."""
        done = False
        numbers = {}
        if provider == CLUSTER_API:
            for one in self.all_of(provider, "machinedeployments"):
                numbers[one["metadata"]["uid"]] = one["spec"]["replicas"]
        machines = self.machines(provider)
        for one in self.all_of(provider, "machinesets"):
            meta, wanted = one["metadata"], one["spec"]["replicas"]
            above = [
                numbers[owner["uid"]] for owner in meta.get("ownerReferences", ()) if owner["uid"] in numbers
            ]
            if above and above[0] != wanted:
                (wanted,) = above
                self.patch(provider, "machinesets", meta["name"], {"spec": {"replicas": wanted}})
                done = True
            ours = _owned(machines, meta["uid"])
            for _ in range(wanted - len(ours)):
                name = f"{meta['name']}-{next(self._numbers)}"
                # The labels of a pool are those of the topmost, and don't change with its sets.
                owners = [owner["name"] for owner in meta.get("ownerReferences", ())]
                self._node(name, owners[0] if owners else meta["name"])
                self._machine(provider, name, self._owner(provider, "MachineSet", one))
                done = True
            for each in sorted(ours, key=lambda one: self._order(provider, one))[
                : max(0, len(ours) - wanted)
            ]:
                if "deletionTimestamp" not in each["metadata"]:
                    self.delete(provider, each["metadata"]["name"])
                    done = True
        return done

    def _order(self, provider: str, machine: Object) -> tuple[bool, bool, str]:
        """First what goes already, then what is marked, then any: by its name, as Cluster API does."""
        meta = machine["metadata"]
        marked = bool(meta.get("annotations", {}).get(_MARKS[provider]))
        return "deletionTimestamp" not in meta, not marked, str(meta["name"])

    def _tell(self, provider: str) -> None:
        """Write the numbers into the status of sets and deployments."""
        ready = {each["metadata"]["name"] for each in self.api.list("nodes") if _is_ready(each)}
        totals: dict[str, list[int]] = {}
        machines = self.machines(provider)
        for one in self.all_of(provider, "machinesets"):
            ours = _owned(machines, one["metadata"]["uid"])
            numbers = [
                len(ours),
                sum(each.get("status", {}).get("nodeRef", {}).get("name") in ready for each in ours),
            ]
            self._status(provider, "machinesets", one, numbers)
            for owner in one["metadata"].get("ownerReferences", ()):
                totals[owner["uid"]] = numbers
        if provider == CLUSTER_API:
            for one in self.all_of(provider, "machinedeployments"):
                self._status(provider, "machinedeployments", one, totals.get(one["metadata"]["uid"], [0, 0]))

    def _status(self, provider: str, plural: str, one: Object, numbers: list[int]) -> None:
        has, ready = numbers
        status = {"replicas": has, "readyReplicas": ready}
        if plural == "machinedeployments":
            status["upToDateReplicas"] = has
        if {key: one.get("status", {}).get(key) for key in status} != status:
            self.patch(provider, plural, one["metadata"]["name"], {"status": status}, "status")

    # How things are made.

    def _set(self, provider: str, pool: str, number: int, *, deployment: bool, autoscaled: bool) -> Object:
        """Make the pool; the reference of its MachineSet."""
        group, _ = _GROUPS[provider]
        bounds = {f"{group}/cluster-api-autoscaler-node-group-{one}-size": "1" for one in ("min", "max")}
        top: Object = {"annotations": bounds} if autoscaled else {}
        inner: Object = dict(top)
        name = pool
        if provider == CLUSTER_API and deployment:
            made = self._create(provider, "MachineDeployment", "machinedeployments", pool, number, top)
            inner = {"ownerReferences": [self._owner(provider, "MachineDeployment", made)]}
            name = f"{pool}-7c9f"
        found = self._create(provider, "MachineSet", "machinesets", name, number, inner)
        return self._owner(provider, "MachineSet", found)

    def _create(self, provider: str, kind: str, plural: str, name: str, number: int, meta: Object) -> Object:
        body = {
            **_kind(provider, kind),
            "metadata": {"name": name, "namespace": NAMESPACE, **meta},
            "spec": {"replicas": number},
        }
        return self.api.request("POST", self.path(provider, plural), body)

    def _owner(self, provider: str, kind: str, one: Object) -> Object:
        return _reference("/".join(_GROUPS[provider]), kind, one["metadata"]["name"], one["metadata"]["uid"])

    def _machine(self, provider: str, node_name: str, owner: Object) -> None:
        """Make a machine for a node that is there, and let the node name it."""
        name = machine_name(node_name)
        body: Object = {
            **_kind(provider, "Machine"),
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "finalizers": [_FINALIZER],
                "ownerReferences": [owner],
            },
            "spec": {"providerID": f"test:///{node_name}"},
        }
        self.api.request("POST", self.path(provider, "machines"), body)
        self.patch(provider, "machines", name, {"status": {"nodeRef": {"name": node_name}}}, "status")
        named = (
            {CLUSTER_API_MACHINE: name, CLUSTER_API_NAMESPACE: NAMESPACE}
            if provider == CLUSTER_API
            else {OPENSHIFT_MACHINE: f"{NAMESPACE}/{name}"}
        )
        self.api.patch("nodes", node_name, {"metadata": {"annotations": named}})

    def _claim(self, node_name: str, pool: str) -> None:
        name = machine_name(node_name)
        body = {
            **_kind(KARPENTER, "NodeClaim"),
            "metadata": {"name": name, "labels": {KARPENTER_LABEL: pool}, "finalizers": [_FINALIZER]},
            "spec": {},
        }
        self.api.request("POST", self.path(KARPENTER, "nodeclaims"), body)
        status = {"status": {"nodeName": node_name, "providerID": f"test:///{node_name}"}}
        self.patch(KARPENTER, "nodeclaims", name, status, "status")
        self.api.patch("nodes", node_name, {"metadata": {"labels": {KARPENTER_LABEL: pool}}})

    def _node(self, name: str, pool: str) -> None:
        made = node(name, pool, f"{REGION}-1", f"test:///{name}", images=1, ready=self.ready)
        self.api.create("nodes", made)


def _owned(machines: list[Object], uid: str) -> list[Object]:
    return [
        one
        for one in machines
        if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences", ()))
    ]


def _kind(provider: str, kind: str) -> Object:
    return {"apiVersion": "/".join(_GROUPS[provider]), "kind": kind}


def _reference(api_version: str, kind: str, name: str, uid: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def _is_ready(found: Object) -> bool:
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in found["status"].get("conditions", [])
    )
