"""The guard of a client: the function that it calls before each write."""

from __future__ import annotations

from collections.abc import Callable

Guard = Callable[[], None]
"""Returns while this process may write, and raises LockLost when it may not."""


def read_only() -> None:
    """Raise RuntimeError: a client without a guard only reads."""
    raise RuntimeError("this client was made for reading; a write needs a guard")
