"""Everybody who makes machines, behind one port: the cluster's own objects, and AKS's agent pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

from reconciler.model.machine import Machine, MachineProvider, MachineRef, Raise, Remove
from reconciler.model.ports import MachineReader, MachineWriter

_NO_AKS = "replace.aks.cluster does not say which managed cluster this is"


class _Maker(MachineReader, MachineWriter, Protocol):
    """Both ports of one provider."""


class MachineProviders:
    """Sends each question and each wish to whoever made the machine. Raises what they raise."""

    def __init__(self, cluster: Callable[[], _Maker], aks: Callable[[], _Maker] | None = None) -> None:
        """Take what makes who knows the cluster's objects, and AKS's agent pools where they are named.

        Neither is made before somebody asks: most passes replace nothing, and need not load it.
        """
        self._cluster = cache(cluster)
        self._aks = cache(aks) if aks is not None else None

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each as it is now, in order."""
        of_aks = [ref for ref in refs if ref.provider is MachineProvider.AKS]
        others = [ref for ref in refs if ref.provider is not MachineProvider.AKS]
        if self._aks is None:
            found = {ref: Machine(ref, problem=_NO_AKS) for ref in of_aks}
        else:
            found = dict(zip(of_aks, self._aks().machines(of_aks) if of_aks else (), strict=True))
        if others:
            found |= dict(zip(others, self._cluster().machines(others), strict=True))
        return tuple(found[ref] for ref in refs)

    def raise_pool(self, action: Raise) -> None:
        """Ask the machine's pool for `wanted` machines."""
        self._of(action.machine).raise_pool(action)

    def remove(self, action: Remove) -> None:
        """Have the machine deleted."""
        self._of(action.machine).remove(action)

    def _of(self, machine: Machine) -> _Maker:
        if machine.ref.provider is not MachineProvider.AKS:
            return self._cluster()
        if self._aks is None:
            raise ValueError(_NO_AKS)
        return self._aks()
