"""The kind Hypervisor on a real API server, with fields and rules of the operator's own definition."""

from __future__ import annotations

from typing import Any

from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.processes import wait_for

Object = dict[str, Any]
PATH = "apis/kvm.cloud.sap/v1/hypervisors"

_TEXT, _FLAG, _TEXTS = {"type": "string"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_CONDITION = {"type": "object", "properties": {"type": _TEXT, "status": _TEXT, "message": _TEXT}}
_SPEC = {
    "type": "object",
    "properties": {
        "maintenance": {**_TEXT, "enum": ["", "manual", "auto", "ha", "termination"]},
        "maintenanceReason": _TEXT,
        "skipTests": {**_FLAG, "default": False},
        "evacuateOnReboot": {**_FLAG, "default": True},
        "aggregates": {**_TEXTS, "default": []},
    },
}
_STATUS = {
    "type": "object",
    "properties": {
        "evicted": _FLAG,
        "numInstances": {"type": "integer", "default": 0},
        "aggregates": {"type": "array", "items": {"type": "object", "properties": {"name": _TEXT}}},
        "traits": _TEXTS,
        "hypervisorVersion": _TEXT,
        "conditions": {"type": "array", "items": _CONDITION},
    },
}


def install(api: Api, *, strict: bool = True) -> None:
    """Make the kind, and wait until it is served. Without `strict` its fields may have any type."""
    parts = {"spec": _SPEC, "status": _STATUS} if strict else {"spec": _ANYTHING, "status": _ANYTHING}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": parts}},
        "subresources": {"status": {}},
    }
    spec = {
        "group": "kvm.cloud.sap",
        "scope": "Cluster",
        "names": {"kind": "Hypervisor", "plural": "hypervisors", "singular": "hypervisor"},
        "versions": [version],
    }
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "hypervisors.kvm.cloud.sap"},
        "spec": spec,
    }
    api.create("customresourcedefinitions", body)

    def served() -> bool:
        try:
            return "items" in api.request("GET", PATH)
        except ApiError as error:
            # Not there yet; or there, and its storage still begins (429).
            if error.status not in (404, 429):
                raise
            return False

    wait_for("the kind Hypervisor", served)


def make(api: Api, name: str, spec: Object | None = None, status: Object | None = None) -> Object:
    """Make a Hypervisor, and return it."""
    body = {"apiVersion": "kvm.cloud.sap/v1", "kind": "Hypervisor", "metadata": {"name": name}}
    made = api.request("POST", PATH, {**body, "spec": spec or {}})
    return made if status is None else report(api, name, status)


def report(api: Api, name: str, status: Object) -> Object:
    """Change the status of a Hypervisor, as the operator does, and return the object."""
    headers = {"Content-Type": "application/merge-patch+json"}
    return api.request("PATCH", f"{PATH}/{name}/status", {"status": status}, headers=headers)


def found(api: Api, name: str) -> Object:
    """Return a Hypervisor."""
    return api.request("GET", f"{PATH}/{name}")
