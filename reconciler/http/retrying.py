"""When a write may be sent, and when a request is sent again: reads and idempotent writes only.

A watch and the lock repeat by rules of their own; every other client uses these two functions.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from reconciler.model.errors import ClusterError, Conflict, TooManyRequests, Unreachable

CHANCE = random.Random()
"""The random part of pauses and choices. Threads do not use the shared generator, whose seed tests set."""

PATIENCE = 15.0
"""Seconds that retries may take. The timeout of the last request comes on top."""

TRIES = 20
"""Writes of one change that conflict. 1 or 2 are usual: what a write depends on rarely changes meanwhile."""

UNANSWERED = 6
"""Writes of one change that the server does not answer, or puts off."""

Guard = Callable[[], None]
"""Called before each write: returns while this process may write, and raises LockLost when it may not."""

Value = TypeVar("Value")


def read_only() -> None:
    """Raise RuntimeError: a client without a guard only reads."""
    raise RuntimeError("this client was made for reading; a write needs a guard")


def patiently(
    work: Callable[[], Value], *, patience: float = PATIENCE, sleep: Callable[[float], None] = time.sleep
) -> Value:
    """Return the result of `work`, and repeat it while it raises Unreachable or TooManyRequests.

    Raises Unreachable if the next try would begin more than `patience` seconds after the first, and any
    other error of `work` at once.
    """
    began = time.monotonic()
    try:
        return work()
    except (Unreachable, TooManyRequests) as error:
        failures = [error]
    patience -= time.monotonic() - began
    # Most processes never need it, and it takes long to load.
    import tenacity

    backoff = tenacity.wait_exponential_jitter(multiplier=0.2, max=4, jitter=0.3)

    def attempt() -> Value:
        if failures:
            raise failures.pop()
        return work()

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked_for = error.retry_after if isinstance(error, ClusterError) else None
        return max(backoff(state), asked_for or 0.0)

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((Unreachable, TooManyRequests)),
        wait=wait,
        stop=tenacity.stop_before_delay(patience),
        sleep=sleep,
        reraise=True,
    )
    try:
        return retrying(attempt)
    except TooManyRequests as error:
        raise Unreachable(
            f"the server still asks for patience: {error}", status=error.status, retry_after=error.retry_after
        ) from error


def write_until_settled(
    write: Callable[[], None],
    settled: Callable[[], bool] = lambda: False,
    *,
    on: tuple[type[ClusterError], ...] = (Conflict,),
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Write a change; after an error in `on`, read the object again and write at once.

    A pause comes before the read, not after it: an object that changes all the time would have changed again.
    There is none after the first error, unless the server asks for one.

    `write` sends the change for the object as it was read last. `settled` reads the object after a failed
    write: it returns True if nothing is left to write (the answer was lost, not the write), and raises
    Conflict if the change no longer fits. A `write` that reads the object itself needs no `settled`.

    Raises the last error after TRIES conflicts or UNANSWERED other errors, after an error other than a
    conflict that comes later than PATIENCE seconds, or if the server asks for a longer pause; any not in `on`
    at once.
    """
    began = time.monotonic()
    for attempt in range(1, TRIES + 1):
        try:
            return write()
        except on as error:
            failure = error
        pause = _pause(attempt, failure)
        if isinstance(failure, Conflict):
            last = attempt >= TRIES or pause > PATIENCE
        else:
            last = attempt >= UNANSWERED or time.monotonic() - began + pause > PATIENCE
        if not last and pause > 0:
            sleep(pause)
        if settled():
            return None
        if last:
            break
    raise failure


def _pause(attempt: int, failure: ClusterError) -> float:
    """Return the pause in seconds: short, growing, and random, so that two writers do not stay in step."""
    longest = 0.2 if isinstance(failure, Conflict) else 1.0
    backoff = min(0.01 * float(2**attempt), longest) if attempt > 1 else 0.0
    return max(CHANCE.uniform(0.5, 1.5) * backoff, failure.retry_after or 0.0)
