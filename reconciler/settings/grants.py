"""What settings need beyond `k8s/base`: keys in the admission policy, Roles for Leases, other folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.settings.check_types import HypervisorCheck, HypervisorConditionCheck, StaggerCheck
from reconciler.settings.notify_types import SlackThread
from reconciler.settings.schema import Settings
from reconciler.settings.trigger_types import (
    AlterAnnotation,
    AlterFinalizer,
    AlterHypervisor,
    AlterLabel,
    AlterTaint,
    Draining,
)

_KINDS = ("Labels", "Annotations", "Taints", "Finalizers")
"""The lists of the admission policy, in its order: the variables 1 to 4."""

_NAME = "node-maintenance-workflows"


class Grants(Struct, frozen=True):
    """What to allow. `keys` are those that triggers change on nodes, by the list of the policy.

    `leases` are the names of Leases by their namespace, and `folders` those of `k8s` to apply.
    """

    prefix: str = DEFAULT_PREFIX
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything beyond `k8s/base` is needed."""
        return bool(self.prefix != DEFAULT_PREFIX or self.keys or self.leases or self.folders)


class Account(Struct, frozen=True):
    """A ServiceAccount, by default the one that `k8s/base` and the chart make for the reconciler."""

    namespace: str = "node-maintenance"
    name: str = "reconciler"

    @property
    def user(self) -> str:
        """The name of the user that the API server sees."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"


def grants_of(settings: Settings) -> Grants:
    """Return what workflows and features of the settings need. The prefix counts for all of the settings."""
    given, prefix = settings.profiles.instances, settings.keys.prefix
    keys: dict[str, set[str]] = {kind: set() for kind in _KINDS}
    leases: dict[str, set[str]] = {}
    folders = set()
    for one in (*given.trigger, *given.check, *given.notify):
        match one.settings:
            case AlterLabel(key=key) if not key.startswith(f"{prefix}/"):
                keys["Labels"].add(key)
            case AlterAnnotation(key=key) if not key.startswith(f"{prefix}/"):
                keys["Annotations"].add(key)
            case AlterTaint(key=key):
                keys["Taints"].add(key)
            case AlterFinalizer(key=key):
                keys["Finalizers"].add(key)
            case AlterHypervisor() | HypervisorCheck() | HypervisorConditionCheck():
                folders.add("k8s/hypervisors")
            case Draining(force_eviction=True):
                folders.add("k8s/escalation")
            case StaggerCheck() as stagger:
                for namespace, name in stagger.leases:
                    leases.setdefault(namespace, set()).add(name)
            case SlackThread(unusable=()) as thread:
                leases.setdefault(thread.lease_namespace, set()).add(thread.lease_name)
    for section in settings.of_features:
        keys["Labels"].update(section.labels(settings))
        keys["Annotations"].update(section.annotations(settings))
    if settings.profiles.shuffle_counts:
        folders.add("k8s/shuffles")
    return Grants(
        prefix,
        {kind: tuple(sorted(found)) for kind, found in keys.items() if found},
        {namespace: tuple(sorted(names)) for namespace, names in sorted(leases.items())},
        tuple(sorted(folders)),
    )


def grants_as_words(grants: Grants) -> Iterator[str]:
    """Yield what is needed, one line each."""
    if grants.prefix != DEFAULT_PREFIX:
        yield f"  The prefix {grants.prefix} in the admission policies."
    for kind, keys in grants.keys.items():
        yield f"  {kind} that triggers change on nodes, in the admission policy: {', '.join(keys)}."
    for namespace, names in grants.leases.items():
        yield f"  A Role for Leases in the namespace {namespace}: {', '.join(names)}."
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
    for namespace, names in grants.leases.items():
        yield f"""\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {_NAME}
  namespace: {namespace}
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{", ".join(names)}]
  verbs: [get, patch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {_NAME}
  namespace: {namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {_NAME}
subjects:
- kind: ServiceAccount
  name: {account.name}
  namespace: {account.namespace}
"""
