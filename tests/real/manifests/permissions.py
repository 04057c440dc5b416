"""What the manifests grant, and what the audit log shows that was used of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.real.manifests.applying import built
from tests.support.controlplane.api import Object
from tests.support.controlplane.audit import AuditEntry

RECONCILER = "system:serviceaccount:node-maintenance:reconciler"
AGENT = "system:serviceaccount:node-maintenance-agent:node-maintenance-agent"


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One verb on one resource; an empty namespace or name stands for all."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def covers(self, entry: AuditEntry) -> bool:
        """Whether the request needs this grant."""
        asked = f"{entry.resource}/{entry.subresource}" if entry.subresource else entry.resource
        return (
            (self.group, self.resource, self.verb) == (entry.group, asked, entry.verb)
            and self.namespace in ("", entry.namespace)
            and self.name in ("", entry.name)
        )


def granted(folder: str, user: str = RECONCILER) -> set[Grant]:
    """What a folder grants to a ServiceAccount."""
    objects = built(folder)
    rules = {(each["kind"], _place(each), each["metadata"]["name"]): each.get("rules") for each in objects}
    found: set[Grant] = set()
    for each in objects:
        if not each["kind"].endswith("RoleBinding"):
            continue
        subjects = {f"system:serviceaccount:{one['namespace']}:{one['name']}" for one in each["subjects"]}
        if user in subjects:
            role = each["roleRef"]
            place = _place(each) if role["kind"] == "Role" else ""
            found.update(_grants(rules[role["kind"], place, role["name"]] or [], _place(each)))
    return found


def used(entries: Iterable[AuditEntry], user: str = RECONCILER) -> list[AuditEntry]:
    """The requests of a ServiceAccount for resources, without those about its own rights."""
    return [
        one for one in entries if one.user == user and one.resource and one.group != "authorization.k8s.io"
    ]


def missing(grants: set[Grant], entries: Iterable[AuditEntry]) -> set[tuple[str, ...]]:
    """The requests that no grant covers."""
    return {
        (one.group, one.resource, one.subresource, one.verb, one.namespace, one.name)
        for one in entries
        if not any(grant.covers(one) for grant in grants)
    }


def unused(grants: set[Grant], entries: Iterable[AuditEntry]) -> set[Grant]:
    """The grants that no request needed."""
    seen = list(entries)
    return {grant for grant in grants if not any(grant.covers(one) for one in seen)}


def _place(found: Object) -> str:
    return str(found["metadata"].get("namespace", ""))


def _grants(rules: list[Object], namespace: str) -> Iterator[Grant]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Grant(group, resource, verb, namespace, name)
