"""What takes part in passes beside the core."""

from __future__ import annotations

from msgspec import Struct

from reconciler.passes.sources import Sources


class Parts(Struct, frozen=True):
    """The sources and the features of a program."""

    sources: Sources
