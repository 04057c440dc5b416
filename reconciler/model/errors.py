"""Every error that the program raises on purpose, and its exit code.

ReconcilerError
├── SettingsError          2  the settings file is wrong; carries every mistake at once
├── PluginError            2  a plugin that is installed can't be used
├── OutputError            2  the file for the output can't be written
├── ClusterError              a request to the API server failed
│   ├── Unreachable        3  no answer: refused, reset, timed out, or 5xx until the retries ended
│   │   └── Late           3  no answer yet: the pass goes on without it
│   ├── Unauthorized       3  401, 403 for the pass as a whole, or no usable credentials
│   │   └── NoServer       3  no answer to the first request of a command that a person waits for
│   ├── Forbidden          1  403 for one object
│   ├── NotFound           1  404
│   ├── Conflict           1  409: the object has changed since it was read
│   ├── TooManyRequests    1  429: an eviction that a budget refuses, or the server throttles
│   └── Rejected           1  any other 4xx, with the server's own message
│       ├── TooLarge       1  the answer is larger than it may be; the rest was not read
│       └── NotKept        1  the server took a write of a node, and not all of it stayed
├── LockLost               1  the lease was not renewed in time: nothing more may be written
├── LockHeld               0  another pass holds the lease
├── RecordUnreadable       -  the record on a node is broken, or of a newer version: the node is held
├── NoThread               1  no other thread can be started now: the limit of processes is reached
├── CloudError             1  a cloud's API refused, or gave no answer; `retry_after` is in seconds
└── SourceError            -  a source of events can't be read: its answer is unknown
"""

from __future__ import annotations

import math

from reconciler import ReconcilerError as ReconcilerError  # plugins, which the model asks, have it too

FIRST_SERVER_ERROR = 500
"""The first HTTP status that says that the server failed. Any below is a refusal."""


class SettingsError(ReconcilerError):
    """The settings can't be used; `mistakes` holds every one, ready to print."""

    exit_code = 2

    def __init__(self, mistakes: tuple[str, ...]) -> None:
        """Create it with the mistakes, each a whole line `file:line:column: key: what to change`."""
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class OutputError(ReconcilerError):
    """The file that an argument names for the output can't be written."""

    exit_code = 2


class GatewayError(ReconcilerError):
    """A Pushgateway has not taken metrics."""


class ClusterError(ReconcilerError):
    """The API server's answer to one request was an error.

    `status` is the HTTP status (0 for none), `retry_after` the server's Retry-After in seconds, `causes` the
    messages that a Status body gives as causes, and `needs` the permission that a 403 misses, such as `get
    configmaps in kube-system`.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        retry_after: float | None = None,
        reason: str = "",
        causes: tuple[str, ...] = (),
        needs: str = "",
    ) -> None:
        """Create it with the server's message, HTTP status, `Status.reason` and `Status.details.causes`."""
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.reason = reason
        self.causes = causes
        self.needs = needs

    @property
    def because(self) -> str:
        """Why, for people: the permission that is missing instead of the server's long message about it."""
        return f"needs {self.needs}" if self.needs else str(self)

    @property
    def temporary(self) -> bool:
        """Whether the same request may succeed a little later."""
        passing = isinstance(self, (Unreachable, Unauthorized, TooManyRequests, Conflict))
        return passing or self.status >= FIRST_SERVER_ERROR


class Unreachable(ClusterError):
    """There was no answer, or only 5xx, until the retries ended."""

    exit_code = 3


class Late(Unreachable):
    """There is no answer yet. The pass goes on without it, and a later pass takes it."""


class Unauthorized(ClusterError):
    """The server refused our identity or the whole pass, or there are no usable credentials."""

    exit_code = 3


class NoServer(Unauthorized):
    """There was no answer to the first request of a command that a person waits for.

    As with refused credentials, nothing else is tried: the context is probably a wrong one.
    """


class Forbidden(ClusterError):
    """403 for one object."""


class NotFound(ClusterError):
    """404."""


class Conflict(ClusterError):
    """409: the object has changed since it was read."""


class TooManyRequests(ClusterError):
    """429: a budget refuses an eviction, or the server asks for patience."""


class Rejected(ClusterError):
    """Any other refusal, with the server's own message."""


class TooLarge(Rejected):
    """The answer is larger than it may be; the rest of it was not read."""


class NotKept(Rejected):
    """The server took a write of a node, and not all of it stayed; `lost` names what did not."""

    def __init__(self, message: str, lost: frozenset[str]) -> None:
        """Create it with what people should know, and what is lost, as `NodeWrite.changes` names it."""
        super().__init__(message)
        self.lost = lost


_BY_STATUS: dict[int, type[ClusterError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: TooManyRequests,
}


def error_for(status: int) -> type[ClusterError]:
    """Return the error that an HTTP status of the API server means; any below 500 is a refusal."""
    return _BY_STATUS.get(status, Unreachable if status >= FIRST_SERVER_ERROR else Rejected)


class LockLost(ReconcilerError):
    """Our lease was not renewed in time; from now on nothing may be written."""


class TooLate(ReconcilerError):
    """A write was not sent: what it follows from was read too long ago."""


class LockHeld(ReconcilerError):
    """Another pass holds the lease; `holder` names it.

    `alive`: it was seen to renew the lease. `again` is in how many seconds the lock is free if it does not.
    """

    exit_code = 0

    def __init__(self, holder: str, *, again: float = math.inf, alive: bool = True) -> None:
        """Create it with the identity of the holder."""
        super().__init__(f"another pass holds the lock: {holder}")
        self.holder, self.again, self.alive = holder, again, alive


class RecordUnreadable(ReconcilerError):
    """The record on a node is broken or of a newer version; it is never overwritten."""


class LedgerUnreadable(ReconcilerError):
    """A plugin's part of the ledger can't be read, or is too large to be kept."""


class SourceError(ReconcilerError):
    """A source of events can't be read; its answer is unknown."""


class NoThread(ReconcilerError):
    """No other thread can be started now; what it was for is tried again."""


class CloudError(ReconcilerError):
    """A cloud's API refused a request or gave no answer; `status` is HTTP's, 0 for none."""

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        """Create it with the reason, the HTTP status and the cloud's Retry-After in seconds."""
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
