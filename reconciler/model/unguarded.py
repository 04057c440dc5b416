"""Unguarded: maintenance that requires a drain of a node, and that this program lets come."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from reconciler.model.moments import to_text


class UnguardedWhy(StrEnum):
    """Why the program does not guard a node. Of several reasons the first one is shown."""

    SETTINGS_REJECTED = "settingsRejected"
    """The settings have a mistake, no earlier ones are known, and no reconciler runs with such."""

    NOT_SELECTED = "notSelected"
    """`nodeSelector` does not select it, or it has the ignore label."""

    MODE = "mode"
    """Observe drains nothing, and Finish begins nothing."""

    NO_RECONCILER = "noReconciler"
    """No reconciler makes passes."""

    UNCORDONED_BY_HAND = "uncordonedByHand"
    """Somebody uncordoned the node, so its events are ignored."""

    DISMISSED = "dismissed"
    """The program has given an event up, and ignores it."""

    HELD_BY_PERSON = "heldByPerson"
    """Somebody holds the node for longer than until the latest start."""

    SOURCE_SILENT = "sourceSilent"
    """The source of the case can't be read, so nothing begins and nothing ends."""


class Unguarded(Struct, frozen=True):
    """Why nobody guards a node with maintenance, and since when.

    `because` says it in a sentence, and `who` says who can change that, with the command or the setting.
    `since` is what the record, the event or the instruction says (UTC), None where nothing says it: what only
    one process remembers does not count.
    """

    why: UnguardedWhy
    because: str
    who: str
    since: datetime | None = None

    @property
    def words(self) -> str:
        """The sentence, with the moment since which it is so, if that is known."""
        return f"{self.because} (since {to_text(self.since)})" if self.since is not None else self.because
