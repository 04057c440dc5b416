"""The input of every decision of a pass."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from msgspec import Struct, field

from reconciler.model.instructions import Instructions, instructions_of
from reconciler.model.keys import OwnKeys, keys_of
from reconciler.model.node import Node, OwnTimes, own_times
from reconciler.model.snapshot import Snapshot
from reconciler.passes.parts import Parts
from reconciler.settings.schema import Settings


class PassContext(Struct, frozen=True, dict=True):
    """The snapshot of the cluster, the settings, and the moment of the pass (UTC).

    `reading_names` are those of the enabled sources: no case waits for another source. `notice_names` are
    those that report maintenance minutes before it begins. `twins` are the nodes that have one VM with
    another node, each with that node's name. `parts` are the sources and features.
    `upgraded` are the agent pools with a node that AKS upgrades.
    """

    snapshot: Snapshot
    settings: Settings
    now: datetime
    parts: Parts
    reading_names: frozenset[str] = frozenset()
    twins: Mapping[str, str] = field(default_factory=dict)
    notice_names: frozenset[str] = frozenset()
    upgraded: frozenset[str] = frozenset()

    @cached_property
    def second(self) -> datetime:
        """The moment as records keep it: in whole seconds."""
        return self.now.replace(microsecond=0)

    @cached_property
    def times(self) -> OwnTimes:
        """Which of our own times to believe."""
        return own_times(self.now, self.snapshot.skew)

    def instructions(self, node: Node) -> Instructions:
        """Return what people say about a node."""
        return instructions_of(node, self.settings.keys.prefix, self.now, self.snapshot.ledger.holds)

    @property
    def keys(self) -> OwnKeys:
        """Our labels and annotations."""
        return keys_of(self.settings.keys.prefix)
