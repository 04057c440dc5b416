"""A line of output for people."""

from __future__ import annotations

from msgspec import Struct


class Line(Struct, frozen=True):
    """A line without its end; `alarm` asks a terminal with colours to show it in red."""

    text: str = ""
    alarm: bool = False
