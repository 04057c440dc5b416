"""Waiting for a condition, with a deadline and a name for what did not come."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_for(
    what: str,
    condition: Callable[[], Value | None],
    *,
    seconds: float = 20,
    every: float = 0.02,
    instead: Callable[[], object] | None = None,
) -> Value:
    """Ask again and again until the answer is true, and return it; TimeoutError names what was awaited.

    `instead` says for the error what there is. The first pause is `every` seconds. Pauses grow to five times
    of it, as each question costs CPU time.
    """
    pause = every
    deadline = time.monotonic() + seconds
    while True:
        if answer := condition():
            return answer
        if time.monotonic() > deadline:
            msg = f"still no {what} after {seconds:g} s"
            if instead is not None:
                msg = f"{msg}, but {instead()}"
            raise TimeoutError(msg)
        time.sleep(pause)
        pause = min(pause * 1.2, every * 5)
