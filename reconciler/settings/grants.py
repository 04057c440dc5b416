"""What settings need beyond `k8s/base`: keys in the admission policy, Roles for Leases, other folders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from reconciler.model.grants import Account, Grants, LeaseGrant
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.settings.schema import Settings

_KINDS = ("Labels", "Annotations", "Taints", "Finalizers")
"""The lists of the admission policy, in its order: the variables 1 to 4."""


def grants_of(settings: Settings) -> Grants:
    """Return what all sections of features need. The prefix counts for all of the settings."""
    keys: defaultdict[str, set[str]] = defaultdict(set)
    leases: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    folders: set[str] = set()
    for section in settings.of_features:
        needed = section.grants(settings)
        folders.update(needed.folders)
        for kind, names in needed.keys.items():
            keys[kind].update(names)
        for lease in needed.leases:
            leases[lease.namespace, lease.role].update(lease.names)
    return Grants(
        settings.keys.prefix,
        {kind: tuple(sorted(keys[kind])) for kind in _KINDS if keys[kind]},
        tuple(
            LeaseGrant(role, namespace, tuple(sorted(names)))
            for (namespace, role), names in sorted(leases.items())
        ),
        tuple(sorted(folders)),
    )


def grants_as_words(grants: Grants) -> Iterator[str]:
    """Yield what is needed, one line each."""
    if grants.prefix != DEFAULT_PREFIX:
        yield f"  The prefix {grants.prefix} in the admission policies."
    for kind, keys in grants.keys.items():
        yield f"  {kind} that triggers change on nodes, in the admission policy: {', '.join(keys)}."
    for lease in grants.leases:
        yield f"  A Role for Leases in the namespace {lease.namespace}: {', '.join(lease.names)}."
    for folder in grants.folders:
        yield f"  {folder}."


def grants_as_manifests(grants: Grants, account: Account) -> str:
    """Return what is needed as YAML: patches for a kustomization of `k8s/base`, then Roles for Leases."""
    return "---\n".join((_patches(grants), *_roles(grants, account)))


def _patches(grants: Grants) -> str:
    lines = [f"# kubectl apply -k {folder}" for folder in grants.folders]
    lines.append("# For your kustomization.yaml. kubectl apply takes the Roles below it.")
    if grants.prefix == DEFAULT_PREFIX and not grants.keys:
        return "\n".join([*lines, "patches: []", ""])
    lines.append("patches:")
    if grants.prefix != DEFAULT_PREFIX:
        lines += _patch("(keys|reconciler)", [(0, f"{{name: prefix, expression: \"'{grants.prefix}/'\"}}")])
    if grants.keys:
        lists = [
            (place, f'{{name: trigger{kind}, expression: "{_list(grants.keys[kind])}"}}')
            for place, kind in enumerate(_KINDS, start=1)
            if kind in grants.keys
        ]
        lines += _patch("reconciler", lists)
    return "\n".join([*lines, ""])


def _patch(policy: str, variables: list[tuple[int, str]]) -> Iterator[str]:
    yield "- target:"
    yield "    kind: ValidatingAdmissionPolicy"
    yield f"    name: node-maintenance-{policy}"
    yield "  patch: |"
    for place, value in variables:
        yield "    - op: replace"
        yield f"      path: /spec/variables/{place}"
        yield f"      value: {value}"


def _list(keys: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{key}'" for key in keys) + "]"


def _roles(grants: Grants, account: Account) -> Iterator[str]:
    for lease in grants.leases:
        yield f"""\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {lease.role}
  namespace: {lease.namespace}
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{", ".join(lease.names)}]
  verbs: [get, patch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {lease.role}
  namespace: {lease.namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {lease.role}
subjects:
- kind: ServiceAccount
  name: {account.name}
  namespace: {account.namespace}
"""
