"""Threads that can't be started, as an interpreter says it at the limit of processes of a Pod or its node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

_BELOW = "_start_joinable_thread" if hasattr(threading, "_start_joinable_thread") else "_start_new_thread"
"""What `threading` asks the interpreter with, by its version."""


@contextmanager
def refused(refuses: Callable[[str], bool]) -> Iterator[None]:
    """Inside, no thread starts whose name `refuses` is true for."""
    start = getattr(threading, _BELOW)

    def begin(bootstrap: Any, *arguments: Any, **named: Any) -> Any:
        if refuses(bootstrap.__self__.name):
            raise RuntimeError("can't start new thread")
        return start(bootstrap, *arguments, **named)

    setattr(threading, _BELOW, begin)
    try:
        yield
    finally:
        setattr(threading, _BELOW, start)


class Once:
    """Refuses the next start of a thread for each of these patterns of names."""

    def __init__(self, *patterns: str) -> None:
        self.left = list(patterns)

    def __call__(self, name: str) -> bool:
        pattern = next((each for each in self.left if fnmatchcase(name, each)), None)
        if pattern is not None:
            self.left.remove(pattern)
        return pattern is not None
