"""What settings guard, in a form that the lock can say: so another process sees what newer settings lose."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.model.values import replace

SHOWN_FOR = timedelta(hours=1)
"""How long it is shown that settings guard less than those before."""


class Selected(Struct, frozen=True):
    """How many nodes a key of the settings selects; `by` is its selector, empty for a profile."""

    key: str
    by: str
    nodes: int = 0


class Coverage(Struct, frozen=True):
    """What settings guard of a cluster.

    `drains` are the kinds that drain a node, `conditions` the conditions, `sources` those that are enabled;
    all three are empty for a file of another program (`foreign`). `managed` of `nodes`
    nodes are managed.
    """

    mode: str
    foreign: bool = False
    drains: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    selected: tuple[Selected, ...] = ()
    managed: int = 0
    nodes: int = 0

    def means(self) -> Coverage:
        """Return it without what nodes that come and go change."""
        selected = tuple(replace(each, nodes=0) for each in self.selected)
        return replace(self, selected=selected, managed=0, nodes=0)


class SettingsSeen(Struct, frozen=True):
    """What the settings in force guard, and what those before did that they do not.

    `lost` says that in words, and `since` is when they came into force (UTC); `before` is what is compared
    with.
    """

    coverage: Coverage
    before: Coverage | None = None
    since: datetime | None = None
    lost: tuple[str, ...] = ()

    def shown(self, now: datetime) -> tuple[str, ...]:
        """Return what is lost while it is shown: until everybody had an hour to see it. `now` is aware."""
        return self.lost if self.since is not None and now - self.since < SHOWN_FOR else ()
