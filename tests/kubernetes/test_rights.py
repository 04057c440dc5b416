"""A refusal names the permission that is missing, as `kubectl auth can-i` takes it."""

from __future__ import annotations

import pytest

from reconciler.kubernetes.connection import to_error


@pytest.mark.parametrize(
    ("method", "path", "needs"),
    [
        ("GET", "/api/v1/nodes", "list nodes"),
        ("GET", "/api/v1/nodes/a", "get nodes"),
        ("PATCH", "/api/v1/nodes/a", "patch nodes"),
        ("PATCH", "/api/v1/nodes/a/status", "patch nodes/status"),
        ("GET", "/api/v1/namespaces", "list namespaces"),
        ("GET", "/api/v1/namespaces/web", "get namespaces"),
        ("GET", "/api/v1/namespaces/kube-system/configmaps/x", "get configmaps in kube-system"),
        ("POST", "/api/v1/namespaces/web/pods/a/eviction", "create pods/eviction in web"),
        ("DELETE", "/api/v1/namespaces/web/pods/a", "delete pods in web"),
        ("GET", "/apis/policy/v1/poddisruptionbudgets", "list poddisruptionbudgets.policy"),
        ("GET", "/apis/apps/v1/namespaces/web/daemonsets/a", "get daemonsets.apps in web"),
        ("GET", "/version", ""),
    ],
)
def test_a_refused_request_names_its_permission(method: str, path: str, needs: str) -> None:
    assert to_error(method, path, 403, {}, b"").needs == needs


def test_another_refusal_names_none() -> None:
    assert to_error("GET", "/api/v1/nodes", 404, {}, b"").needs == ""
