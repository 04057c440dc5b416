"""Reports each request of this process to those who asked for it, such as metrics and traces."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

Reporter = Callable[[str, str, int | None, float, str], None]
"""Gets the API, the HTTP method, the status of the answer (None without one), the seconds until then, and the
path with its query. The path may have a secret in it.
"""

_reporters: list[Reporter] = []


def report_requests(to: Reporter) -> Callable[[], None]:
    """Report every request from now on, from the thread that sends it; return what ends it."""
    _reporters.append(to)
    return lambda: _reporters.remove(to)


def report(api: str, method: str, status: int | None, seconds: float, path: str = "") -> None:
    """Report one request. Raises nothing."""
    for to in _reporters:
        with suppress(Exception):
            to(api, method, status, seconds, path)
