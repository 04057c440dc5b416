"""The signs of a chart."""

from __future__ import annotations

from msgspec import Struct


class Signs(Struct, frozen=True):
    """One column wide each. Letters and `!` are the same everywhere."""

    out: str
    span: str
    window: str
    freeze: str
    closed: str
    cut: str
    latest: str = "L"
    platform: str = "P"
    missed: str = "!"
    onwards: str = ">"
    unknown: str = "?"


BLOCKS = Signs(out="█", span="═", window="▒", freeze="x", closed="·", cut="…")
"""For a terminal with block characters."""

ASCII = Signs(out="#", span="=", window="+", freeze="x", closed=".", cut="~")
"""For every other terminal."""
