"""A publisher shows the state of a case on its node to other tools, and decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from reconciler.features.publishing.settings import Hints, Sign
from reconciler.model.node import Node
from reconciler.passes.plugin import NodeSigns, Standing


class Showing(Struct, frozen=True):
    """Which signs and hints the settings enable, under which prefix, at which moment (aware, UTC)."""

    signs: tuple[Sign, ...]
    prefix: str
    now: datetime
    hints: Hints = Hints()


class NodePublisher(Struct, frozen=True):
    """Shows a case on the node itself.

    `sign` is its name in `publish`, None if a section of its own enables it. `bears` says whether the node
    has a sign of the installation with this prefix, which may have to change. `signs` returns the changes on
    the node; it removes its signs when the settings disable it. `removed` returns the changes that remove
    every sign of an installation. `annotations` and `conditions` are what it reads on every node, even while
    it is disabled.
    """

    sign: Sign | None
    bears: Callable[[Node, str], bool]
    signs: Callable[[Node, Standing, Showing], NodeSigns]
    removed: Callable[[Node, str], NodeSigns]
    annotations: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
