"""Who is told of each request of this process: nobody, until a process shows metrics."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

Reporter = Callable[[str, str, int | None, float], None]
"""Gets the API, the HTTP method, the status of the answer (None without one), and the seconds until then."""

_reporters: list[Reporter] = []


def report_requests(to: Reporter) -> Callable[[], None]:
    """Report every request from now on, from the thread that sends it; return what ends it."""
    _reporters.append(to)
    return lambda: _reporters.remove(to)


def report(api: str, method: str, status: int | None, seconds: float) -> None:
    """Report one request. Raises nothing."""
    for to in _reporters:
        with suppress(Exception):
            to(api, method, status, seconds)
