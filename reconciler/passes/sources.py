"""What a pass asks of all sources together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from reconciler.model.polling import AnyMemory
from reconciler.model.problems import guarded
from reconciler.model.values import replace
from reconciler.passes.polled import PolledSource
from reconciler.passes.source import Source, Wants, all_wants
from reconciler.settings.schema import Settings


class Sources:
    """The sources of a program, in the order of a node's readings in reports.

    `polled` are those that query a service, enabled or not.
    """

    def __init__(self, *sources: Source) -> None:
        """Take these sources."""
        self.all = sources
        # A pass asks many times, and Python takes long to say what is of an abstract class.
        self.polled: tuple[PolledSource[Any, Any], ...] = tuple(
            source for source in sources if isinstance(source, PolledSource)
        )

    def switched_on(self, settings: Settings) -> tuple[Source, ...]:
        """Return the sources that the settings enable."""
        return tuple(source for source in self.all if source.enabled(settings))

    def reading_names(self, settings: Settings) -> frozenset[str]:
        """Return the names that readings of the enabled sources can have."""
        return frozenset(
            name for source in self.switched_on(settings) for name in source.reading_names(settings)
        )

    def notice_names(self, settings: Settings) -> frozenset[str]:
        """Return the names of the readings that report maintenance minutes before it begins."""
        return frozenset(
            name for source in self.switched_on(settings) for name in source.notice_names(settings)
        )

    def wants(self, settings: Settings) -> Wants:
        """Return what all sources together read.

        Parts of nodes are read even while a source is disabled, so that enabling it changes no watch. What
        needs a separate request is read only for enabled sources.
        """
        wanted = [(source.enabled(settings), source.wants(settings)) for source in self.all]
        return all_wants(
            each if on else replace(each, agents=False, remediator=False, server=False) for on, each in wanted
        )

    def changes(self, memories: Mapping[str, AnyMemory], now: datetime) -> Iterable[datetime]:
        """Yield the moments after `now` at which readings of polled sources may change by time alone."""
        for source in self.polled:
            if source.name in memories:
                found, _ = guarded(
                    f"when {source.name} changes is not known",
                    partial(_changes, source, memories[source.name], now),
                    (),
                )
                yield from found


def _changes(source: PolledSource[Any, Any], memory: AnyMemory, now: datetime) -> tuple[datetime, ...]:
    return tuple(source.changes(memory, now))
