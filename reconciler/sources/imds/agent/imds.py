"""Reads the Azure Instance Metadata Service of the VM on which this process runs.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

from reconciler import USER_AGENT
from reconciler.model.errors import SourceError
from reconciler.sources.imds import scheduled_events as imds
from reconciler.sources.imds.agent.plain_http import HttpAnswer, exchange

DEFAULT_ADDRESS = "http://169.254.169.254"
API_VERSION = "2020-07-01"
PATH = f"/metadata/scheduledevents?api-version={API_VERSION}"

TIMEOUT = 10.0
"""The timeout of a request in seconds: IMDS is on the same host, but it sometimes stalls."""

FIRST_TIMEOUT = 130.0
"""Seconds for the first answer: the first call enables scheduled events, which takes up to 120 s."""


class ImdsError(SourceError):
    """IMDS gave no usable answer; `retry_after` is the wait in seconds that it asks for."""

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        """Create the error from the reason, the HTTP status (0:

        none) and the wait in seconds that IMDS asks for.
        """
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Imds:
    """Scheduled events of one VM's IMDS."""

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        user_agent: str = USER_AGENT,
        timeout: float = TIMEOUT,
        first_timeout: float = FIRST_TIMEOUT,
    ) -> None:
        """Use the IMDS at this URL; ValueError if it is not a plain HTTP one. Timeouts are in seconds."""
        url = urlsplit(address)
        if url.scheme != "http" or not url.hostname or url.path not in ("", "/"):
            raise ValueError(f"not the address of an IMDS, such as {DEFAULT_ADDRESS}: {address!r}")
        self.address = address
        self._host = url.hostname
        self._port = url.port or 80
        self._user_agent = user_agent
        self._timeout = timeout
        self._first_timeout = first_timeout
        self._answered = False

    def scheduled_events(self) -> dict[str, object]:
        """Return the document of scheduled events; ImdsError if IMDS gives none."""
        answer = self._ask("GET")
        if not answer.body.strip():
            raise ImdsError("IMDS answered with an empty body", status=answer.status)
        try:
            document = imds.document(answer.body)
        except SourceError as error:
            raise ImdsError(f"IMDS answered with a broken body: {error}", status=answer.status) from error
        self._answered = True
        return document

    def acknowledge(self, event_id: str) -> None:
        """Tell Azure that the event may start now, for every VM that it names; ImdsError if that fails."""
        body = json.dumps({"StartRequests": [{"EventId": event_id}]}).encode()
        self._ask("POST", body)

    def _ask(self, method: str, body: bytes | None = None) -> HttpAnswer:
        timeout = self._timeout if self._answered else self._first_timeout
        headers = {"Metadata": "true", "User-Agent": self._user_agent, "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection(self._host, self._port)
        try:
            answer = exchange(connection, method, PATH, headers, body, timeout=timeout)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise ImdsError(f"no answer from IMDS at {self.address}: {reason}") from error
        if answer.status != 200:
            raise ImdsError(
                f"IMDS answered {answer.status} {answer.reason}".rstrip(),
                status=answer.status,
                retry_after=answer.retry_after,
            )
        return answer
