"""Whether a node meets a required node affinity, of a pod or of a volume."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.node import Node
from reconciler.model.volume import Terms

NAME = "metadata.name"
"""The one field of a node that `matchFields` can name. No label has this key by chance."""


def meets(node: Node, terms: Terms) -> bool:
    """Whether the node meets one of the terms. A term without requirements is met by no node."""
    return any(term and all(one.matches(labels_for(node, one.key)) for one in term) for term in terms)


def labels_for(node: Node, key: str) -> Mapping[str, str]:
    """Return what a requirement with this key is about: the node's labels, or its name."""
    return {NAME: node.name} if key == NAME else node.labels
