"""What a source of maintenance is: one object, and a line in registry.py.

A source reads one node at a time and returns readings. One that has to ask a service of its own is a
PolledSource, see polled.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from reconciler.model.event import Reading
from reconciler.model.node import Node
from reconciler.model.polling import AnyMemory
from reconciler.model.snapshot import Agents
from reconciler.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class Wants:
    """What a source has the pass read from the API server.

    Of each node: the conditions of these types, the annotations and labels of these keys. Annotations under
    our own prefix are always read. `agents` asks for the state of the node agent's DaemonSet, `remediator`
    for AKS's remediator-config.
    """

    conditions: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    agents: bool = False
    remediator: bool = False


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a source may look at beside the node; `now` is aware, UTC. `memories` are by the source's name."""

    settings: Settings
    now: datetime
    agents: Agents = Agents()
    memories: Mapping[str, AnyMemory] = field(default_factory=dict)


class Source(Protocol):
    """One source; it keeps no state and reads no clock. A subclass inherits what most sources answer."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name by which settings, records and reports know it; it is never changed."""

    @abstractmethod
    def enabled(self, settings: Settings) -> bool:
        """Whether the settings switch it on. One that is off reads nothing, and no case waits for it."""

    def reading_names(self, settings: Settings) -> Collection[str]:
        """Return every `Reading.source` that it can return: its own name, or a name per thing it reads.

        When an event on record came from one of these names and there is no reading of that name, the event
        counts as unknown, not as over.
        """
        del settings
        return (self.name,)

    def wants(self, settings: Settings) -> Wants:
        """Return what it has the pass read, whether it is switched on or not."""
        del settings
        return Wants()

    @abstractmethod
    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return what it says of a node; nothing where the node is none of its affair.

        Raises nothing: data that can't be read is a reading that is unknown, with the reason.
        """
