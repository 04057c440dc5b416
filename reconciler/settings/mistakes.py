"""Mistakes that a part of the settings finds in itself, each with its path from there."""

from __future__ import annotations

from dataclasses import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong, in words, and the keys that lead there; numbers are places in lists, from 0."""

    path: Path
    said: str


class Mistakes(ValueError):
    """Several mistakes at once, so that a validator need not stop at the first."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        """Take the mistakes; their paths start where the validator stands."""
        super().__init__("; ".join(mistake.said for mistake in mistakes))
        self.mistakes = mistakes
