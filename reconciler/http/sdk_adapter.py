"""The HTTP adapter of `requests` below SDKs: each answer has a total time, and a size when it is decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.exceptions import DecodeError

from reconciler.http.bounded import LARGEST, bound


class BoundedAdapter(HTTPAdapter):
    """requests' own adapter with limits; nothing is tried twice. Metrics show `api`."""

    def __init__(self, api: str = "arm") -> None:
        """Create it without connections."""
        self._api = api
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Make the pool, of bounded connections."""
        super().init_poolmanager(*arguments, **named)
        bound(self.poolmanager, self._api)

    def proxy_manager_for(self, proxy: str, **named: Any) -> Any:
        """Return the pool for a proxy, of bounded connections."""
        known = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **named)
        if not known:
            bound(manager, self._api)
        return manager

    def build_response(self, req: Any, resp: Any) -> Any:
        """Return the response, whose body ends with an error when it is larger than it may be."""
        response = super().build_response(req, resp)
        stream = resp.stream

        def limited(*arguments: Any, **named: Any) -> Iterator[bytes]:
            left = LARGEST
            for chunk in stream(*arguments, **named):
                left -= len(chunk)
                if left < 0:
                    raise DecodeError(f"the answer is larger than {LARGEST} bytes")
                yield chunk

        resp.stream = limited
        return response
