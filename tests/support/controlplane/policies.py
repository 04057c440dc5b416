"""A ValidatingAdmissionPolicy of a test's own, in force while the test needs it and no longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.controlplane.api import Api, Object
from tests.support.controlplane.waiting import wait_for

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
