"""A validating webhook for evictions, in force while a test needs it and no longer."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.waiting import wait_for

PLACE = "apis/admissionregistration.k8s.io/v1"
EVICTIONS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods/eviction"],
}


@dataclass(frozen=True, slots=True)
class Guard:
    """A webhook: the name of its configuration, its address, and the authority of its certificate (PEM)."""

    name: str
    url: str
    authority: bytes


@contextmanager
def webhook(api: Api, guard: Guard, app: str, expected: str) -> Iterator[None]:
    """Let the guard review every eviction.

    It is in force once `expected` is in the server's answer about a pod of the app. That pod must outlive the
    test, or be replaced.
    """
    made = {
        "name": f"{guard.name}.example.com",
        "clientConfig": {"url": guard.url, "caBundle": base64.b64encode(guard.authority).decode()},
        "rules": [EVICTIONS],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }
    try:
        body = {"metadata": {"name": guard.name}, "webhooks": [made]}
        api.request("POST", f"{PLACE}/validatingwebhookconfigurations", body)
        wait_for("the webhook in force", lambda: expected in rehearsed(api, app))
        yield
    finally:
        api.request("DELETE", f"{PLACE}/validatingwebhookconfigurations/{guard.name}")
        wait_for("evictions without the webhook", lambda: rehearsed(api, app) == "")


def rehearsed(api: Api, app: str) -> str:
    """The answer of the server to a dry-run eviction of an app's pod, empty for a yes."""
    name = next(one["metadata"]["name"] for one in api.list("pods", labels=f"app={app}"))
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "default"},
        "deleteOptions": {"dryRun": ["All"]},
    }
    place = f"api/v1/namespaces/default/pods/{name}/eviction"
    try:
        api.request("POST", place, body, query={"dryRun": "All"})
    except ApiError as error:
        return str(error)
    return ""
