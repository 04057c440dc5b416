"""A line of output for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end; `alarm` asks a terminal with colours to show it in red."""

    text: str = ""
    alarm: bool = False
