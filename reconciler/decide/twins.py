"""Nodes with one VM: at most one of them tells the truth, and a pass can't know which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.model.azure import Vm, vm_of
from reconciler.model.node import Node


def twins_of(nodes: Iterable[Node]) -> Mapping[str, str]:
    """Return the names of the nodes whose providerID another node has too, each with one such node's name."""
    names: dict[Vm | str, list[str]] = {}
    for node in nodes:
        if node.provider_id:
            # Two spellings of one VM are the same VM.
            key = vm_of(node.provider_id) or node.provider_id.strip().casefold()
            names.setdefault(key, []).append(node.name)
    found: dict[str, str] = {}
    for together in names.values():
        if len(together) > 1:
            first, second, *_ = sorted(together)
            found |= {name: second if name == first else first for name in together}
    return found
