"""Counts how often a property's core assertions run: a law must not hold because nothing was asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from tests.support.searching import HALF, hits

_Given = ParamSpec("_Given")


class Hits:
    """What one property counts over all of its examples.

    Each property has one of its own, which begins at nothing with every run: neither the order of tests nor
    the process matters.
    """

    def __init__(self) -> None:
        """Begin at nothing."""
        self.found = 0

    def count(self, more: int = 1) -> None:
        """Count one more, or as many as are given."""
        self.found += more

    def at_least(
        self, least: int, usual: int = HALF
    ) -> Callable[[Callable[_Given, None]], Callable[_Given, None]]:
        """Return a decorator, to be put above `@settings`, that demands so many over all examples.

        A run that plays a part of the examples demands that part, a quick run nothing. `usual` is the part
        that the property plays in a usual run.
        """
        least = hits(least, usual)

        def demand(test: Callable[_Given, None]) -> Callable[_Given, None]:
            @wraps(test)
            def counted(*args: _Given.args, **named: _Given.kwargs) -> None:
                self.found = 0
                test(*args, **named)
                assert self.found >= least, f"the core of this law ran {self.found} times, not {least}"

            return counted

        return demand
