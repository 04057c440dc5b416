"""The Authorization header of every request, kept fresh for as long as the process lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from reconciler.clients.kubernetes.official import authorization
from reconciler.errors import Unauthorized

LOOK_EVERY = 10.0
"""Seconds between two looks at the token's age; the package itself renews it 5 minutes before it runs out."""

PLUGIN_LIMIT = 60.0
"""Seconds that a credential plugin may take; the package sets no limit, and a hung one would hang us."""

Value = TypeVar("Value")


class Credentials:
    """The header of one Configuration, asked for by many threads."""

    def __init__(self, configuration: Any, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the package's Configuration, and a clock in seconds."""
        self._configuration = configuration
        self._clock = clock
        # The package has no lock of its own: eight threads at expiry would run the plugin eight times.
        self._lock = threading.Lock()
        self._header: str | None = None
        self._looked: float | None = None

    def header(self) -> str | None:
        """Return the header's value, None for client certificates; Unauthorized when a refresh fails."""
        with self._lock:
            now = self._clock()
            if self._looked is None or now - self._looked >= LOOK_EVERY:
                self._header = within(PLUGIN_LIMIT, lambda: authorization(self._configuration))
                self._looked = now
            return self._header


def within(seconds: float, work: Callable[[], Value]) -> Value:
    """Return what `work` returns or raise what it raises; Unauthorized when it takes longer."""
    results: list[Value] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again, in the thread that asked
            errors.append(error)

    thread = threading.Thread(target=run, name="credentials", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise Unauthorized(f"the credential plugin of the kubeconfig did not answer within {seconds:g} s")
    return results[0]
