"""All sources, and the questions that concern all of them. A new source is one line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from reconciler.model.polling import AnyMemory
from reconciler.settings.schema import Settings
from reconciler.sources.arm import ArmPlans
from reconciler.sources.aws import Ec2Events
from reconciler.sources.node_condition import AksConditions, NamedConditions
from reconciler.sources.polled import PolledSource
from reconciler.sources.published import PublishedEvents
from reconciler.sources.request import Requests
from reconciler.sources.source import Source, Wants

SOURCES: tuple[Source, ...] = (
    AksConditions(),
    PublishedEvents(),
    Requests(),
    NamedConditions(),
    ArmPlans(),
    Ec2Events(),
)
"""In the order in which a node's readings are told."""

CLIENTS: Mapping[str, str] = {"arm": "azure.arm", "aws": "aws.ec2"}
"""For each polled source the module below `reconciler.clients` whose `for_source` makes its client.

It is text because sources must not import clients, and because a client loads only where its source is on.
"""


def switched_on(settings: Settings) -> tuple[Source, ...]:
    """Return the sources that the settings switch on."""
    return tuple(source for source in SOURCES if source.enabled(settings))


def polled() -> tuple[PolledSource[Any, Any], ...]:
    """Return the sources that ask a service, switched on or not."""
    return tuple(source for source in SOURCES if isinstance(source, PolledSource))


def reading_names(settings: Settings) -> frozenset[str]:
    """Return the names that readings of the switched-on sources can have."""
    return frozenset(name for source in switched_on(settings) for name in source.reading_names(settings))


def wants(settings: Settings) -> Wants:
    """Return what all sources together want read.

    What a source wants of nodes is read also while it is switched off, so that switching it changes no
    watch; what needs a request of its own is read only for sources that are on.
    """
    of_nodes = [source.wants(settings) for source in SOURCES]
    on = [source.wants(settings) for source in switched_on(settings)]
    return Wants(
        conditions=frozenset().union(*(one.conditions for one in of_nodes)),
        annotations=frozenset().union(*(one.annotations for one in of_nodes)),
        labels=frozenset().union(*(one.labels for one in of_nodes)),
        agents=any(one.agents for one in on),
        remediator=any(one.remediator for one in on),
    )


def changes(memories: Mapping[str, AnyMemory], now: datetime) -> Iterable[datetime]:
    """Yield the moments after `now` at which what the polled sources say may change by time alone."""
    for source in polled():
        if source.name in memories:
            yield from source.changes(memories[source.name], now)
