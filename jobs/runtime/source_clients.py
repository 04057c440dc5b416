"""The clients of polled sources: each is created when the settings first enable its source.

A source names its client's module (`PolledSource.client`). It has one function for this place:

    def for_source(settings: Settings, guard: Guard | None) -> SourceClient
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from reconciler.http.retrying import Guard
from reconciler.model.polling import Listing
from reconciler.model.ports import SourceClient
from reconciler.model.values import replace
from reconciler.passes.polled import PolledSection, PolledSource
from reconciler.settings.schema import Settings

Factory = Callable[[Settings, Guard | None], SourceClient]

KEPT_PROBLEM = 60.0
"""The time for which a problem is kept at least, in seconds; its service may ask for more."""


class SourceClients:
    """Creates each client once, and again when its section of the settings changes. Tokens are kept."""

    def __init__(self, sources: Iterable[PolledSource[Any, Any]], guard: Guard | None = None) -> None:
        """Give the clients of these sources this guard, which raises LockLost if the lock is not ours.

        Without a guard they only read. A process without a guard can't write the ledger, so its clients keep
        their answers in memory.
        """
        self._sources = tuple(sources)
        self._guard = guard
        self._made: dict[str, tuple[PolledSection, SourceClient]] = {}

    def of(self, settings: Settings) -> Mapping[str, SourceClient]:
        """Return the clients of the enabled polled sources, by the source's name."""
        for source in self._sources:
            section = source.section(settings)
            if not section.enabled:
                self._made.pop(source.name, None)
            elif source.name not in self._made or self._made[source.name][0] != section:
                client = factory(source)(settings, self._guard)
                if self._guard is None:
                    client = Keeping(client, section.every.total_seconds())
                self._made[source.name] = (section, client)
        return {name: client for name, (_, client) in self._made.items()}


def factory(source: PolledSource[Any, Any]) -> Factory:
    """Return the factory of the client of this source."""
    found: Factory = import_module(source.client).for_source
    return found


class Keeping:
    """A client that repeats its answers for `seconds`, for a process that can't write the ledger.

    A problem is kept for as long as its service asks, but no longer than `seconds` or KEPT_PROBLEM.
    """

    def __init__(
        self, client: SourceClient, seconds: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Use this client for queries; `clock` is in seconds."""
        self._client = client
        self._seconds = seconds
        self._clock = clock
        self._kept: dict[Any, tuple[float, Listing[Any, Any]]] = {}

    def ask(self, scopes: Sequence[Any], /) -> tuple[Listing[Any, Any], ...]:
        """Query the scopes without a kept answer."""
        now = self._clock()
        # Names of scopes come from nodes, so what is over is not kept.
        self._kept = {scope: one for scope, one in self._kept.items() if one[0] > now}
        kept = {scope: self._kept[scope][1] for scope in scopes if scope in self._kept}
        asked = [scope for scope in scopes if scope not in kept]
        fresh = {one.scope: one for one in (self._client.ask(asked) if asked else ())}
        now = self._clock()
        for scope, listing in fresh.items():
            if listing.asked:
                wait = max(min(listing.wait or 0.0, self._seconds), KEPT_PROBLEM)
                self._kept[scope] = (now + (wait if listing.problem else self._seconds), listing)
        return tuple(replace(kept[scope], wait=None) if scope in kept else fresh[scope] for scope in scopes)
