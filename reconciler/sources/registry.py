"""All sources, and functions over all of them. To add a source, add a line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from reconciler.model.polling import AnyMemory
from reconciler.model.problems import guarded
from reconciler.settings.schema import Settings
from reconciler.sources.arm.source import ArmPlans
from reconciler.sources.aws.source import Ec2Events
from reconciler.sources.condition import AksConditions, NamedConditions
from reconciler.sources.esx.labels import EsxHosts
from reconciler.sources.esx.vcenter import VCenterHosts
from reconciler.sources.imds.published import PublishedEvents
from reconciler.sources.kubernikus import KubeletVersions
from reconciler.sources.polled import PolledSource
from reconciler.sources.request.source import Requests
from reconciler.sources.source import Source, Wants

SOURCES: tuple[Source, ...] = (
    AksConditions(),
    PublishedEvents(),
    Requests(),
    NamedConditions(),
    ArmPlans(),
    Ec2Events(),
    EsxHosts(),
    VCenterHosts(),
    KubeletVersions(),
)
"""In the order of a node's readings in reports."""

CLIENTS: Mapping[str, str] = {"arm": "arm.client", "aws": "aws.client", "vcenter": "esx.client"}
"""For each polled source, the module below `reconciler.sources` whose `for_source` creates its client.

It is text because sources must not import clients, and because a client is loaded only if its source is
enabled.
"""


def switched_on(settings: Settings) -> tuple[Source, ...]:
    """Return the sources that the settings enable."""
    return tuple(source for source in SOURCES if source.enabled(settings))


def polled() -> tuple[PolledSource[Any, Any], ...]:
    """Return the polled sources, enabled or not."""
    return _polled_of(SOURCES)


@lru_cache(maxsize=2)
def _polled_of(sources: tuple[Source, ...]) -> tuple[PolledSource[Any, Any], ...]:
    # A pass asks many times, and Python takes long to say what is of an abstract class.
    return tuple(source for source in sources if isinstance(source, PolledSource))


def reading_names(settings: Settings) -> frozenset[str]:
    """Return the names that readings of the enabled sources can have."""
    return frozenset(name for source in switched_on(settings) for name in source.reading_names(settings))


def notice_names(settings: Settings) -> frozenset[str]:
    """Return the names of the readings that report maintenance minutes before it begins."""
    return frozenset(name for source in switched_on(settings) for name in source.notice_names(settings))


def wants(settings: Settings) -> Wants:
    """Return what all sources together read.

    Parts of nodes are read even while a source is disabled, so that enabling it changes no watch. What needs
    a separate request is read only for enabled sources.
    """
    of_nodes = [source.wants(settings) for source in SOURCES]
    on = [each for source, each in zip(SOURCES, of_nodes, strict=True) if source.enabled(settings)]
    return Wants(
        conditions=frozenset().union(*(one.conditions for one in of_nodes)),
        annotations=frozenset().union(*(one.annotations for one in of_nodes)),
        labels=frozenset().union(*(one.labels for one in of_nodes)),
        agents=any(one.agents for one in on),
        remediator=any(one.remediator for one in on),
        server=any(one.server for one in on),
    )


def changes(memories: Mapping[str, AnyMemory], now: datetime) -> Iterable[datetime]:
    """Yield the moments after `now` at which readings of polled sources may change by time alone."""
    for source in polled():
        if source.name in memories:
            found, _ = guarded(
                f"when {source.name} changes is not known",
                partial(_changes, source, memories[source.name], now),
                (),
            )
            yield from found


def _changes(source: PolledSource[Any, Any], memory: AnyMemory, now: datetime) -> tuple[datetime, ...]:
    return tuple(source.changes(memory, now))
