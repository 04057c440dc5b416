"""What every transport has in common: it sends a delivery, or says why not."""

from __future__ import annotations

import ssl
from typing import Protocol

from reconciler.features.notices.deliveries import Delivery
from reconciler.http.plain import SecretMissing, from_environment, from_file
from reconciler.model.secret import MASKED, Secret
from reconciler.model.workflow import WorkflowMessage

LARGEST_SECRET = 64 << 10
"""Bytes of a file with a secret."""

_SHORTEST_MASKED = 4
"""Shorter values are not searched for in texts: they would be found everywhere."""


class NotSent(Exception):
    """A delivery was not sent.

    `refused` means that the same request would be refused again. `retry_after` is in seconds. The message has
    no secret in it.
    """

    def __init__(self, message: str, *, refused: bool = False, retry_after: float | None = None) -> None:
        """Create it with the reason."""
        super().__init__(message)
        self.refused = refused
        self.retry_after = retry_after


class Transport(Protocol):
    """Sends to one entry of `notify`."""

    def send(self, delivery: Delivery) -> str:
        """Send it, and return the thread of a chat that it began or continued, else an empty text.

        Takes a bounded time. Raises NotSent.
        """


class Sender(Protocol):
    """Sends to the receiver of one notification of a workflow."""

    def send(self, message: WorkflowMessage) -> None:
        """Send it, in a bounded time; raises NotSent."""


def resolved(secret: Secret) -> str:
    """Return the text of a secret; NotSent if a name or a file is missing."""
    try:
        return secret.resolved(from_environment, _file)
    except SecretMissing as error:
        raise NotSent(str(error), refused=True) from error


def masked(text: str, *secrets: str) -> str:
    """Return the text without these secrets."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_MASKED:
            text = text.replace(secret, MASKED)
    return text


def tls_failure(error: BaseException) -> str:
    """Return why there is no TLS connection, with the remedy for a certificate that is not trusted."""
    cause: object = error
    while isinstance(cause, BaseException):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"no TLS connection, because its certificate is not accepted ({cause.verify_message}); "
                "SSL_CERT_FILE can name a file with its certificate authority"
            )
        cause = cause.args[0] if cause.args else None
    return "no TLS connection"


def _file(path: str) -> str:
    data = from_file(path, LARGEST_SECRET + 1)
    if len(data) > LARGEST_SECRET:
        raise SecretMissing(f"{path} is larger than {LARGEST_SECRET} bytes")
    return data.decode("utf-8", "replace").strip()
