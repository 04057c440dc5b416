"""A PersistentVolume, reduced to which claim uses it and where it can be mounted."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.selector import Requirement

Terms = tuple[tuple[Requirement, ...], ...]
"""Terms of a node selector, any of which is enough."""


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume that is bound to the claim `namespace/claim`.

    `affinity` are the required terms of its node affinity; none of them: it can be mounted on every node.
    """

    name: str
    namespace: str
    claim: str
    affinity: Terms = ()
