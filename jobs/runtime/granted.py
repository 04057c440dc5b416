"""Compares what the settings need with what the cluster grants the reconciler's ServiceAccount."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import Connection, Request, api
from reconciler.kubernetes.wire.shapes import decode
from reconciler.model.errors import ClusterError
from reconciler.model.grants import Account, Grants

_POLICY = "node-maintenance-reconciler"
_PLACE = api("admissionregistration.k8s.io", "v1") / "validatingadmissionpolicies" / _POLICY
_TEXT = re.compile(r"'([^']*)'")
_USER = re.compile(r"'system:serviceaccount:([^':]+):([^':]+)'")
_REVIEWS = 50
"""Leases that are asked for, one request each."""


class _Variable(msgspec.Struct):
    name: str = ""
    expression: str = ""


class _Spec(msgspec.Struct):
    variables: list[_Variable] = msgspec.field(default_factory=list)
    match_conditions: list[_Variable] = msgspec.field(default_factory=list, name="matchConditions")


class _Policy(msgspec.Struct):
    spec: _Spec


class _Allowed(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Allowed


def installed_account(connection: Connection, namespace: str) -> Account:
    """Return the reconciler's ServiceAccount, as the admission policy names it.

    Without the policy it is the one that is installed by default, in this namespace.
    """
    return _account(objects.find(connection, _PLACE, _Policy), namespace)


def _account(policy: _Policy | None, namespace: str) -> Account:
    for condition in policy.spec.match_conditions if policy is not None else ():
        named = _USER.search(condition.expression)
        if named is not None:
            return Account(*named.groups())
    return Account(namespace)


def missing_grants(connection: Connection, namespace: str, grants: Grants) -> Iterator[str]:
    """Yield what the settings need and the cluster does not grant, one sentence each.

    An error is one, too. A cluster without the admission policy restricts no key. `namespace` is that of the
    reconciler.
    """
    try:
        policy = objects.find(connection, _PLACE, _Policy)
        if policy is not None:
            yield from _of_policy(policy, grants)
        yield from _of_leases(connection, _account(policy, namespace), grants)
    except ClusterError as error:
        why = error.because
        yield f"the permissions in the cluster can't be compared with the settings: {why}"


def _of_policy(policy: _Policy, grants: Grants) -> Iterator[str]:
    known = {variable.name: _TEXT.findall(variable.expression) for variable in policy.spec.variables}
    if known.get("prefix") != [f"{grants.prefix}/"]:
        yield f"the admission policy {_POLICY} in the cluster has another prefix than {grants.prefix}"
    for kind, keys in grants.keys.items():
        absent = [key for key in keys if key not in known.get(f"trigger{kind}", ())]
        if absent:
            yield f"the admission policy {_POLICY} in the cluster lacks trigger{kind}: {', '.join(absent)}"


def _of_leases(connection: Connection, account: Account, grants: Grants) -> Iterator[str]:
    wanted = [
        (lease.namespace, verb, name)
        for lease in grants.leases
        for verb, name in (("create", ""), *(("patch", name) for name in lease.names[:_REVIEWS]))
    ]
    for namespace, verb, name in wanted:
        attributes = {"namespace": namespace, "verb": verb, "name": name}
        asked = {**attributes, "group": "coordination.k8s.io", "resource": "leases"}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": account.user, "resourceAttributes": asked},
        }
        place = api("authorization.k8s.io", "v1") / "subjectaccessreviews"
        answer = connection.send(Request("POST", place, body=body))
        if not decode(_Review, answer).status.allowed:
            what = f"the Lease {name}" if name else "Leases"
            yield f"the ServiceAccount of the reconciler may not {verb} {what} in the namespace {namespace}"
