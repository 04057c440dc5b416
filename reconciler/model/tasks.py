"""What a pass does about one node beside its patch and its drain.

A feature declares the kinds of its actions, and gives tasks: each one knows what it does, `act` when.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from reconciler.model.errors import ClusterError
from reconciler.model.outcome import ActionKind

Client = TypeVar("Client")


class NotHere(ClusterError):
    """This process has no client for a task, so another process or a later pass does it."""


class Port(Struct, Generic[Client], frozen=True):
    """Through what a task is done: a client by its name, and why nothing is done without it, in words."""

    name: str
    without: str

    def of(self, clients: Clients) -> Client:
        """Return the client; raises NotHere without it."""
        client: Client | None = clients(self.name)
        if client is None:
            raise NotHere(self.without)
        return client


Clients = Callable[[str], Any]
"""Returns the client of this name, None if the process has none. Writers check the lock first."""


class Task(Protocol):
    """One thing to do about one node. It is already recorded, so a later pass can repeat it."""

    @property
    def node(self) -> str:
        """The node."""

    @property
    def action(self) -> ActionKind:
        """What it is."""

    @property
    def what(self) -> tuple[str, ...]:
        """What it is about, for `Beside.write`: its kind, and what of this kind."""

    def perform(self, clients: Clients) -> str | None:
        """Do it without waiting for its end, or nothing if an earlier pass has; return what to tell people.

        Raises ClusterError, CloudError and LockLost.
        """
