"""A publisher shows the state of cases to other tools, and decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from reconciler.features.publishing.settings import Hints, Sign
from reconciler.model.node import Node
from reconciler.model.ports import ClusterReader
from reconciler.passes.plugin import Fleet, NodeSigns, ObjectChanges, Standing


class Showing(Struct, frozen=True):
    """Which signs and hints the settings enable, under which prefix, at which moment (aware, UTC)."""

    signs: tuple[Sign, ...]
    prefix: str
    now: datetime
    hints: Hints = Hints()


class NodePublisher(Protocol):
    """Shows a case on the node itself.

    It removes its signs when the settings disable it. `annotations` and `conditions` are what it reads on
    every node, even while it is disabled.
    """

    @property
    def sign(self) -> Sign | None:
        """Its name in `publish`, None if a section of its own enables it."""

    @property
    def annotations(self) -> frozenset[str]:
        """The annotations that it reads."""

    @property
    def conditions(self) -> frozenset[str]:
        """The types of the conditions that it reads."""

    def bears(self, node: Node, prefix: str) -> bool:
        """Whether the node has a sign of this installation, which may have to change."""

    def signs(self, node: Node, standing: Standing, showing: Showing) -> NodeSigns:
        """Return the changes on the node, nothing if there are none."""

    def removed(self, node: Node, prefix: str) -> NodeSigns:
        """Return the changes that remove every sign of this installation."""


class ObjectPublisher(Protocol):
    """Shows cases as separate objects.

    They are read while the settings enable it, and after that until none is left.
    """

    @property
    def sign(self) -> Sign:
        """Its name in `publish`."""

    @property
    def objects(self) -> str:
        """The name of its objects in messages, in the plural."""

    def read(self, reader: ClusterReader, prefix: str) -> Sequence[Any] | None:
        """Return this installation's objects, None if the cluster has no such kind. Raises ClusterError."""

    def changes(self, existing: Sequence[Any], fleet: Fleet) -> ObjectChanges:
        """Return what to write so that the objects agree with the plans."""

    def removed(self, existing: Sequence[Any], fleet: Fleet) -> ObjectChanges:
        """Return the deletions while the settings do not enable it."""
