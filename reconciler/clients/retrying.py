"""When a request is sent again: reads and idempotent writes only, and declared nowhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import tenacity

from reconciler.errors import ClusterError, TooManyRequests, Unreachable

PATIENCE = 15.0
"""Seconds from the first try until an outage is called one; a request's own timeout may come on top."""

Value = TypeVar("Value")
_backoff = tenacity.wait_exponential_jitter(multiplier=0.2, max=4, jitter=0.3)


def _wait(state: tenacity.RetryCallState) -> float:
    """Return the backoff, or the server's wish where that is longer."""
    error = state.outcome.exception() if state.outcome else None
    wish = error.retry_after if isinstance(error, ClusterError) else None
    return max(_backoff(state), wish or 0.0)


def patiently(
    work: Callable[[], Value], *, patience: float = PATIENCE, sleep: Callable[[float], None] = time.sleep
) -> Value:
    """Return what `work` returns, trying again while the server is unreachable or asks for patience.

    Raises Unreachable when `patience` (seconds) would be over before the next try, and at once whatever
    else `work` raises.
    """
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((Unreachable, TooManyRequests)),
        wait=_wait,
        stop=tenacity.stop_before_delay(patience),
        sleep=sleep,
        reraise=True,
    )
    try:
        return retrying(work)
    except TooManyRequests as error:
        raise Unreachable(
            f"the server still asks for patience: {error}", status=error.status, retry_after=error.retry_after
        ) from error
