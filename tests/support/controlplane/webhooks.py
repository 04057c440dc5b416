"""Admission policies and webhooks that change or deny what the program writes."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.controlplane.api import Api, ApiError, Object
from tests.support.controlplane.configuration import make_certificates
from tests.support.controlplane.processes import wait_for
from tests.support.stub import Answer, Asked, Stub, json_answer

_PLACE = "apis/admissionregistration.k8s.io/v1"


def for_nodes(name: str, expression: str, message: str) -> tuple[Object, Object]:
    """Return a policy that denies updates of nodes unless the expression is true, and its binding."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    policy = {
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": message}],
        },
    }
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
    return policy, binding


@contextmanager
def in_force(api: Api, policy: Object, binding: Object, denies: Callable[[], bool]) -> Iterator[None]:
    """Create both, and delete both at the end; `denies` writes something that the policy denies.

    The API server reads the policies once a second. Without the wait at the end, a policy that is deleted
    would deny what the next test writes.
    """
    objects = {"validatingadmissionpolicies": policy, "validatingadmissionpolicybindings": binding}
    for kind, made in objects.items():
        api.request("POST", f"{_PLACE}/{kind}", made)
    try:
        wait_for("the policy in force", denies)
        yield
    finally:
        for kind, made in objects.items():
            api.request("DELETE", f"{_PLACE}/{kind}/{made['metadata']['name']}")
        wait_for("the end of the policy", lambda: not denies())


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


Changes = Callable[[Object], list[Object]]
"""From a node as it is to be written, the changes of a webhook to it (RFC 6902)."""


@contextmanager
def changed_nodes(api: Api, folder: Path, changes: Changes) -> Iterator[None]:
    """Let a webhook change each node that is written; `folder` is for its certificate."""
    certificates = make_certificates(folder)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificates.serving, certificates.serving_key)
    name, probe = "node-editor", "node-editor-probe"

    def review(asked: Asked) -> Answer:
        request = json.loads(asked.body)["request"]
        patch = json.dumps(changes(request["object"])).encode()
        answer = {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch"}
        answer["patch"] = base64.b64encode(patch).decode()
        return json_answer(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        )

    server = Stub(review, serving)
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["nodes"],
    }
    made = {
        "name": f"{name}.example.com",
        "clientConfig": {
            "url": f"{server.url}/",
            "caBundle": base64.b64encode(certificates.authority.read_bytes()).decode(),
        },
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }

    def asked() -> bool:
        before = len(server.asked)
        api.request("POST", "api/v1/nodes", {"metadata": {"name": probe}}, query={"dryRun": "All"})
        return len(server.asked) > before

    try:
        api.request(
            "POST", f"{PLACE}/mutatingwebhookconfigurations", {"metadata": {"name": name}, "webhooks": [made]}
        )
        wait_for("the webhook in force", asked)
        yield
    finally:
        api.request("DELETE", f"{PLACE}/mutatingwebhookconfigurations/{name}")
        wait_for("nodes without the webhook", lambda: not asked())
        server.close()
