"""What the API server has to allow beyond `k8s/base`, and to whom."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from reconciler.model.keys import DEFAULT_PREFIX


class LeaseGrant(Struct, frozen=True):
    """Names of Leases in a namespace, and the name of the Role that allows them."""

    role: str
    namespace: str
    names: tuple[str, ...]


class Grants(Struct, frozen=True):
    """What to allow. `keys` are those without our prefix that are changed on nodes, by the policy's list.

    `folders` are those of `k8s` to apply.
    """

    prefix: str = DEFAULT_PREFIX
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leases: tuple[LeaseGrant, ...] = ()
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
