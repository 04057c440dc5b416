"""A node as views of the whole fleet show it."""

from __future__ import annotations

from msgspec import Struct


class FleetNode(Struct, frozen=True):
    """One node of the cluster, whether or not the plan is about it.

    `zone` and `pool` are empty if they are not known. `managed` is whether the settings select it. `closed`
    is why it takes no new pods, empty if it takes some.
    """

    node: str
    zone: str = ""
    pool: str = ""
    managed: bool = True
    closed: str = ""
