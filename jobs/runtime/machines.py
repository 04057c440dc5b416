"""The clients of all machine providers as one; each is made when a machine of its provider is first read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from reconciler.model.machine import Machine, MachineRef, MachineWriter, Remove, ScaleUp
from reconciler.model.ports import MachineReader


class MachineClient(MachineReader, MachineWriter, Protocol):
    """The client of one provider: it shows machines, scales up a pool, and deletes a machine."""

    def forget(self) -> None:
        """Forget what was read for an earlier pass."""


Makers = Mapping[str, Callable[[], MachineClient]]
"""What makes the client of each provider, by the provider's name."""


class NotSetUp(Struct, frozen=True):
    """A provider without what it needs; `problem` says what is missing."""

    problem: str

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine with the problem."""
        return tuple(Machine(ref, problem=self.problem) for ref in refs)

    def scale_up(self, action: ScaleUp) -> None:
        """Raise ValueError: every machine from here has a problem."""
        raise ValueError(f"{action.node}: {self.problem}")

    def remove(self, action: Remove) -> None:
        """Raise ValueError, as `scale_up` does."""
        raise ValueError(f"{action.node}: {self.problem}")

    def forget(self) -> None:
        """Forget nothing."""


class MachineProviders:
    """All providers as MachineReader and MachineWriter; each request goes to the machine's own provider."""

    def __init__(self, makers: Makers) -> None:
        """Create no client yet: most passes replace nothing."""
        self._makers = makers
        self._made: dict[str, MachineClient] = {}

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine as it is now, in order; raises nothing."""
        for client in self._made.values():
            client.forget()
        found: dict[MachineRef, Machine] = {}
        for provider in dict.fromkeys(ref.provider for ref in refs):
            of_it = [ref for ref in refs if ref.provider == provider]
            found |= dict(zip(of_it, self._client(provider).machines(of_it), strict=True))
        return tuple(found[ref] for ref in refs)

    def scale_up(self, action: ScaleUp) -> None:
        """Scale the machine's pool to `wanted` machines; raises ClusterError or CloudError."""
        self._client(action.machine.ref.provider).scale_up(action)

    def remove(self, action: Remove) -> None:
        """Delete the machine; raises ClusterError or CloudError."""
        self._client(action.machine.ref.provider).remove(action)

    def _client(self, provider: str) -> MachineClient:
        if provider not in self._made:
            self._made[provider] = self._makers[provider]()
        return self._made[provider]
