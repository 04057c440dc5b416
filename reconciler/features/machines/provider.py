"""A machine provider: its name, and how a node shows that its machine belongs to it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reconciler.model.machine import MachineRef
from reconciler.model.node import Node


class MachineProvider(Struct, frozen=True):
    """One provider.

    Its client, in `features/machines/providers.py`, has the same name. Reports show `name`. `annotations` are
    the keys that `ref_of` reads on a node. `ref_of` returns the machine of a node, or None if the machine is
    not this provider's; it sends no request.
    """

    name: str
    ref_of: Callable[[Node], MachineRef | None]
    annotations: frozenset[str] = frozenset()
