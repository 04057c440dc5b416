"""The Authorization header of every request, kept fresh for as long as the process lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from reconciler.model.errors import Unauthorized

LOOK_EVERY = 10.0
"""Seconds between two calls of `authorization`. A token is renewed minutes before it expires."""

PLUGIN_LIMIT = 60.0
"""Seconds that a credential plugin may take. The official package sets no limit."""

Value = TypeVar("Value")


class Credentials:
    """One header for many threads."""

    def __init__(
        self, authorization: Callable[[], str | None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Use this function, which returns the header, and a clock in seconds."""
        self._authorization = authorization
        self._clock = clock
        # The official package has no lock: eight threads at expiry would run the plugin eight times.
        self._lock = threading.Lock()
        self._header: str | None = None
        self._looked: float | None = None

    def header(self) -> str | None:
        """Return the header's value, None for client certificates; Unauthorized if a refresh fails."""
        with self._lock:
            now = self._clock()
            if self._looked is None or now - self._looked >= LOOK_EVERY:
                self._header = within(PLUGIN_LIMIT, self._authorization)
                self._looked = now
            return self._header


def within(seconds: float, work: Callable[[], Value]) -> Value:
    """Return what `work` returns, or raise what it raises; Unauthorized if it takes longer."""
    results: list[Value] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            errors.append(error)

    thread = threading.Thread(target=run, name="credentials", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise Unauthorized(f"the credential plugin of the kubeconfig did not answer within {seconds:g} s")
    return results[0]
