"""A PersistentVolume, reduced to which claim uses it and where it can be mounted."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.selector import Requirement

Terms = tuple[tuple[Requirement, ...], ...]
"""Terms of a node selector, any of which is enough."""


class Volume(Struct, frozen=True):
    """A PersistentVolume that is bound to the claim `namespace/claim`.

    `affinity` are the required terms of its node affinity; none of them: it can be mounted on every node.
    """

    name: str
    namespace: str
    claim: str
    affinity: Terms = ()
