"""A write that only shows something to other tools; no decision depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from reconciler.model.actions import ActionName

if TYPE_CHECKING:
    from reconciler.model.ports import ClusterWriter


class Publication(Protocol):
    """One such write about one node; `act` sends it after everything else."""

    @property
    def node(self) -> str:
        """The node that it is about."""

    @property
    def action(self) -> ActionName:
        """Its name in reports and outcomes."""

    def send(self, writer: ClusterWriter) -> str | None:
        """Send the write, and return what people should know; raises ClusterError and LockLost."""
