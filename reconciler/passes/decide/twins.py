"""Nodes with the same VM. At most one of their providerIDs is true, and a pass can't know which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from reconciler.model.machine import Vm, vm_of
from reconciler.model.node import Node
from reconciler.model.problems import Faults


def _key(node: Node) -> Vm | str | None:
    # Two spellings of one VM are the same VM.
    return (vm_of(node.provider_id) or node.provider_id.strip().casefold()) if node.provider_id else None


def twins_of(nodes: Iterable[Node], faults: Faults | None = None) -> Mapping[str, str]:
    """Return the names of the nodes whose providerID another node has too, each with one such node's name."""
    faults = Faults() if faults is None else faults
    names: dict[Vm | str, list[str]] = {}
    for node in nodes:
        key = faults.of(node.name, "its VM is not known", partial(_key, node), None)
        if key is not None:
            names.setdefault(key, []).append(node.name)
    found: dict[str, str] = {}
    for together in names.values():
        if len(together) > 1:
            first, second, *_ = sorted(together)
            found |= {name: second if name == first else first for name in together}
    return found
