"""What a publisher is: it shows other tools where a case stands, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.ports import ClusterReader
from reconciler.model.publication import Publication
from reconciler.publishing.standing import Standing
from reconciler.settings.schema import Settings
from reconciler.settings.sections.others import Sign


@dataclass(frozen=True, slots=True)
class Showing:
    """Which signs the settings switch on, under which prefix, at which moment (aware, UTC)."""

    signs: tuple[Sign, ...]
    prefix: str
    now: datetime


@dataclass(frozen=True, slots=True)
class NodeSigns:
    """What changes on one node: annotations, which join the node's own patch, and writes of their own.

    None as an annotation's value removes it.
    """

    annotations: Mapping[str, str | None] = field(default_factory=dict)
    writes: tuple[Publication, ...] = ()


class NodePublisher(Protocol):
    """Shows a case on the node itself. It removes its signs once the settings switch it off.

    `annotations` and `conditions` are what it reads on every node, also while it is switched off.
    """

    @property
    def sign(self) -> Sign:
        """Its name in `publish`."""

    @property
    def annotations(self) -> frozenset[str]:
        """The annotations that it reads."""

    @property
    def conditions(self) -> frozenset[str]:
        """The types of the conditions that it reads."""

    def bears(self, node: Node, prefix: str) -> bool:
        """Whether the node has a sign of this installation, which may have to change."""

    def signs(self, node: Node, standing: Standing, showing: Showing) -> NodeSigns:
        """Return what changes on the node; nothing where all is as it should be."""

    def removed(self, node: Node, prefix: str) -> NodeSigns:
        """Return what removes every sign of this installation."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a publisher of objects looks at: the plans, the nodes by name, and the moment (aware, UTC)."""

    plans: tuple[NodePlan, ...]
    nodes: Mapping[str, Node]
    settings: Settings
    now: datetime


@dataclass(frozen=True, slots=True)
class ObjectChanges:
    """Writes, and the moments (UTC) at which time alone changes an object."""

    writes: tuple[Publication, ...] = ()
    moments: tuple[datetime, ...] = ()


class ObjectPublisher(Protocol):
    """Shows cases as objects of their own. They are read only while the settings switch it on."""

    @property
    def sign(self) -> Sign:
        """Its name in `publish`."""

    @property
    def objects(self) -> str:
        """Its objects' name in messages, in the plural."""

    def read(self, reader: ClusterReader, prefix: str) -> Sequence[Any] | None:
        """Return this installation's objects, None where the cluster has no such kind.

        Raises ClusterError.
        """

    def changes(self, existing: Sequence[Any], fleet: Fleet) -> ObjectChanges:
        """Return what to write so that the objects agree with the plans."""
