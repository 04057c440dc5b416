"""What notifiers get: a notice, and its node."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.plan import Notice


class Notification(Struct, frozen=True):
    """One notice about one node. `uid` distinguishes the node from a later one with the same name."""

    node: str
    uid: str
    notice: Notice
