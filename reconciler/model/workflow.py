"""The data of the workflows of one node."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from reconciler.model.record import State


class ProfileData(Struct, frozen=True):
    """One profile of one node, as the annotation `<keys.prefix>/maintenance-data` holds it.

    `transition` is when `current` was entered (UTC). `previous` differs from `current` until a pass has run
    the `enter` chain of `current` to its end.
    """

    transition: datetime
    current: State = State.OPERATIONAL
    previous: State = State.OPERATIONAL

    @property
    def is_theirs(self) -> bool:
        """Whether maintenance-controller entered the state: it writes fractions of seconds, we do not."""
        return self.transition.microsecond != 0

    @property
    def is_entering(self) -> bool:
        """Whether the `enter` chain of the state has not ended."""
        return self.previous is not self.current


class WorkflowData(Struct, frozen=True):
    """The annotation of one node: its profiles, and when each notification instance was last sent (UTC)."""

    profiles: Mapping[str, ProfileData] = field(default_factory=dict)
    notifications: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def worst(self) -> State:
        """The worst state of all profiles, operational without any."""
        order = list(State)
        return max(
            (one.current for one in self.profiles.values()), key=order.index, default=State.OPERATIONAL
        )
