"""A source of maintenance: one object, and a line in reconciler/sources/__init__.py.

A source reads one node at a time and returns readings. A source that queries a service is a PolledSource, see
polled.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field

from reconciler.model.event import Reading
from reconciler.model.node import Node
from reconciler.model.polling import AnyMemory
from reconciler.model.snapshot import Agents, ServerVersion
from reconciler.settings.schema import Settings


class Wants(Struct, frozen=True):
    """What a source or a feature needs from the API server.

    For each node: the conditions of these types, and the annotations and labels with these keys.
    Annotations under our own prefix are always read. `agents` means the state of the node agent's
    DaemonSet, `remediator` AKS's remediator-config, `server` the version of the API server.
    """

    conditions: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    agents: bool = False
    remediator: bool = False
    server: bool = False


_NOTHING = Wants()


def all_wants(some: Iterable[Wants]) -> Wants:
    """Return what all of these want."""
    some = tuple(some)
    return Wants(
        conditions=frozenset().union(*(one.conditions for one in some)),
        annotations=frozenset().union(*(one.annotations for one in some)),
        labels=frozenset().union(*(one.labels for one in some)),
        agents=any(one.agents for one in some),
        remediator=any(one.remediator for one in some),
        server=any(one.server for one in some),
    )


class SourceContext(Struct, frozen=True):
    """What a source may read besides the node; `now` is aware, UTC. `memories` are by the source's name."""

    settings: Settings
    now: datetime
    agents: Agents = Agents()
    memories: Mapping[str, AnyMemory] = field(default_factory=dict)
    server: ServerVersion = ServerVersion()


class Source(Protocol):
    """One source. It has no state and reads no clock. A subclass inherits defaults that fit most sources."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in settings, records and reports, which never changes."""

    @abstractmethod
    def enabled(self, settings: Settings) -> bool:
        """Whether the settings enable it. A disabled source reads nothing, and no case waits for it."""

    def reading_names(self, settings: Settings) -> Collection[str]:
        """Return every `Reading.source` that it can return: its own name, or several names.

        If an event on record came from one of these names and there is no reading with that name, the event
        counts as unknown, not as over.
        """
        del settings
        return (self.name,)

    def notice_names(self, settings: Settings) -> Collection[str]:
        """Return the reading names under which it reports planned maintenance minutes before it begins."""
        del settings
        return ()

    def wants(self, settings: Settings) -> Wants:
        """Return what it needs from the API server, enabled or not."""
        del settings
        return _NOTHING

    @abstractmethod
    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return its readings of a node, none if it has nothing to do with the node.

        Raises nothing: unreadable data becomes an unknown reading with the reason.
        """
