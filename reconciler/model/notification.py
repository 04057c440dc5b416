"""What notifiers get: a notice, and its node."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.plan import Notice


@dataclass(frozen=True, slots=True)
class Notification:
    """One notice about one node. `uid` distinguishes the node from a later one with the same name."""

    node: str
    uid: str
    notice: Notice
