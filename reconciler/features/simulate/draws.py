"""Draws by a seed: the same words give the same number on every machine and in every version of Python."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

from msgspec import Struct

_Item = TypeVar("_Item")
_BITS = 53


class Draws(Struct, frozen=True):
    """Numbers that depend on the seed and on what they are for, and on no other draw."""

    seed: int

    def part(self, *purpose: object) -> float:
        """Return a number from 0 to 1, 1 excluded, for this purpose."""
        digest = sha256(repr((self.seed, *map(str, purpose))).encode()).digest()
        return (int.from_bytes(digest[:8], "big") >> (64 - _BITS)) / (1 << _BITS)

    def between(self, least: float, most: float, *purpose: object) -> float:
        """Return a number from `least` to `most` for this purpose."""
        return least + (most - least) * self.part(*purpose)

    def one_of(self, items: Sequence[_Item], *purpose: object) -> _Item:
        """Return one of the items, which are at least one, for this purpose."""
        return items[int(self.part(*purpose) * len(items))]
