"""Our identity at Azure, the set-up of its clients, and the text of its errors.

The first request imports Azure's packages. The import takes a quarter of a second and sixty megabytes, so
it must not happen while Azure is disabled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from reconciler.http.plain import retry_after

if TYPE_CHECKING:
    from azure.core import AzureClouds
    from azure.core.credentials import TokenCredential
    from azure.core.pipeline.transport import RequestsTransport

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
"""The timeout between two bytes of an answer, in seconds."""

ONCE: Mapping[str, Any] = {
    "retry_total": 0,
    "retry_connect": 0,
    "retry_read": 0,
    "retry_status": 0,
    "connection_timeout": CONNECT_TIMEOUT,
    "read_timeout": READ_TIMEOUT,
}
"""No retries: the pass records when to query again."""

_LONGEST_PROBLEM = 300


def credential(cloud: str) -> TokenCredential:
    """Return our identity in one of Azure's clouds (Public, China, USGovernment).

    This is workload identity if its webhook has set the environment. Else it is what azure-identity finds:
    variables, a managed identity, or a person's own login. ValueError if workload identity is incomplete.
    """
    from azure.identity import AzureAuthorityHosts, DefaultAzureCredential, WorkloadIdentityCredential

    hosts = {
        "Public": AzureAuthorityHosts.AZURE_PUBLIC_CLOUD,
        "China": AzureAuthorityHosts.AZURE_CHINA,
        "USGovernment": AzureAuthorityHosts.AZURE_GOVERNMENT,
    }
    # The webhook of workload identity names the authority, too.
    authority = os.environ.get("AZURE_AUTHORITY_HOST") or hosts[cloud]
    if os.environ.get("AZURE_FEDERATED_TOKEN_FILE"):
        return WorkloadIdentityCredential(authority=authority, transport=transport(), **ONCE)
    return DefaultAzureCredential(authority=authority, transport=transport(), **ONCE)


def transport() -> RequestsTransport:
    """Return a transport of Azure's SDK that limits each answer: its time, and its size when decoded."""
    import requests
    from azure.core.pipeline.transport import RequestsTransport

    from reconciler.http.sdk_adapter import BoundedAdapter

    session = requests.Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, BoundedAdapter())
    return RequestsTransport(session=session)


def cloud_setting(cloud: str) -> AzureClouds:
    """Return the SDK's own name of a cloud."""
    from azure.core import AzureClouds

    return {
        "Public": AzureClouds.AZURE_PUBLIC_CLOUD,
        "China": AzureClouds.AZURE_CHINA_CLOUD,
        "USGovernment": AzureClouds.AZURE_US_GOVERNMENT,
    }[cloud]


def status_of(error: BaseException) -> int:
    """Return the HTTP status, 0 if there was no answer."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def plain(error: BaseException) -> str:
    """Return the error in one line: its code and message, without the repetitions of Azure's own text."""
    status, inner = status_of(error), getattr(error, "error", None)
    code, message = getattr(inner, "code", None), getattr(inner, "message", None)
    words = [str(status) if status else "", str(code or ""), str(message or error or type(error).__name__)]
    text = " ".join(" ".join(word for word in words if word).split())
    return text if len(text) <= _LONGEST_PROBLEM else text[: _LONGEST_PROBLEM - 1] + "…"


def wish(error: BaseException, wall: Callable[[], float] = time.time) -> float | None:
    """Return the wait in seconds that Azure asks for, None if it asks for none.

    Azure writes it in milliseconds under two names of its own, or as Retry-After. `wall` (Unix time) turns a
    date into a wait.
    """
    headers = _headers(error)
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (text := headers.get(name)) and text.isdecimal():
            return float(text) / 1000
    return retry_after(headers.get("Retry-After") or headers.get("retry-after"), wall)


def _headers(error: BaseException) -> Mapping[str, str]:
    headers = getattr(getattr(error, "response", None), "headers", None)
    return headers if isinstance(headers, Mapping) else {}
