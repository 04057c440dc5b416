"""The workflows of a node, which the settings define, and the messages that they send."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct, field

from reconciler.model.codec import UnixMoment
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


LONGEST = 2000
"""Characters of a text that a template makes. The rest is left out."""


class WorkflowMessage(Struct, frozen=True):
    """A message about one node, as the template of the instance made it.

    `id` is the same for the same message in every process. `at` is when a pass found that it is due (UTC).
    `title` is the first message of a thread, empty for an instance without threads.
    """

    id: str
    instance: str
    node: str
    at: UnixMoment
    text: Annotated[str, Meta(max_length=LONGEST)]
    title: str = ""
