"""Work that goes on in other threads while a test does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def meanwhile(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do each work in a thread of its own until the `with` ends; the event asks it to return."""
    ended = threading.Event()
    threads = [threading.Thread(target=work, args=(ended,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
