"""Mistakes that a section of the settings finds in itself, with paths relative to the section."""

from __future__ import annotations

from msgspec import Struct

Path = tuple[str | int, ...]


def spelt(path: Path) -> str:
    """Return a path as Kubernetes writes it: `windows[1].start`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


class Mistake(Struct, frozen=True):
    """What is wrong, as a text, and the path of keys to it. Numbers are list indexes, from 0."""

    path: Path
    message: str


class Mistakes(ValueError):
    """Several mistakes at once, so that a validator does not stop at the first."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        """Combine mistakes whose paths start at the section of the validator."""
        super().__init__("; ".join(mistake.message for mistake in mistakes))
        self.mistakes = mistakes
