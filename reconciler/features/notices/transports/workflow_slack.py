"""The instance types `slack` and `slackThread` of workflows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

from reconciler.features.notices.transports.http import Http, Post
from reconciler.features.notices.transports.slack import LONGEST, ThreadGone, post_message
from reconciler.features.notices.transports.transport import NotSent
from reconciler.model.check_reads import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.errors import ClusterError
from reconciler.model.moments import shifted
from reconciler.model.printable import without_slack_markup
from reconciler.model.workflow_message import WorkflowMessage
from reconciler.settings.sections.notify_types import Slack, SlackThread


class WorkflowSlack:
    """Posts each message to an incoming webhook."""

    def __init__(self, settings: Slack, http: Http) -> None:
        """Send as these settings say."""
        self._settings, self._http = settings, http

    def send(self, message: WorkflowMessage) -> None:
        """See the port. The template may have markup of Slack; the values that it inserts have none."""
        body = {"text": message.text[:LONGEST], "channel": self._settings.channel}
        reply = self._http.send(Post(self._settings.hook, body))
        if reply.body.strip() != b"ok":
            raise NotSent("Slack did not answer ok", refused=True)


class Threads(Protocol):
    """Reads and writes the Leases that keep threads."""

    def lease(self, ref: LeaseRef) -> LeaseSeen | None:
        """Return a Lease, None if it does not exist; raises ClusterError."""

    def take_lease(self, take: LeaseTake) -> None:
        """Write it as it was read, or create it; raises LockLost and ClusterError."""


class WorkflowThread:
    """Posts messages into a thread, and begins a new one after each period.

    The holder of the Lease is the thread, as maintenance-controller writes it.
    """

    def __init__(
        self, settings: SlackThread, http: Http, threads: Threads, now: Callable[[], datetime]
    ) -> None:
        """Send as these settings say; `now` is the clock (aware)."""
        self._settings, self._http, self._threads, self._now = settings, http, threads, now
        self._begun: tuple[str, datetime] | None = None

    def send(self, message: WorkflowMessage) -> None:
        """See the port."""
        thread = self._thread(message)
        try:
            self._post(message.text, thread)
        except ThreadGone:
            # Somebody deleted it.
            self._begun = None
            self._post(message.text, self._begin(message, self._seen()))

    def _thread(self, message: WorkflowMessage) -> str:
        """Return the thread to continue, or a new one; the Lease has it before anything is posted there."""
        seen = self._seen()
        now = self._now()
        if seen is not None and seen.holder and _lasts(seen, now):
            return seen.holder
        return self._begin(message, seen)

    def _begin(self, message: WorkflowMessage, seen: LeaseSeen | None) -> str:
        now = self._now()
        if self._begun is None or not self._begun[1] <= now < shifted(self._begun[1], self._settings.period):
            thread = self._post(message.title, "")
            if not thread:
                raise NotSent("Slack did not name the message that it posted", refused=True)
            self._begun = (thread, now)
        # If this fails, the next try has the thread, and posts no second title.
        thread, _ = self._begun
        try:
            self._threads.take_lease(LeaseTake(self._ref, thread, now, self._settings.period, seen))
        except ClusterError as error:
            raise NotSent(f"the Lease {self._ref} can't be written: {_why(error)}") from error
        self._begun = None
        return thread

    def _seen(self) -> LeaseSeen | None:
        try:
            return self._threads.lease(self._ref)
        except ClusterError as error:
            raise NotSent(f"the Lease {self._ref} can't be read: {_why(error)}") from error

    @property
    def _ref(self) -> LeaseRef:
        return LeaseRef(self._settings.lease_namespace, self._settings.lease_name)

    def _post(self, text: str, thread: str) -> str:
        settings = self._settings
        body: dict[str, Any] = {"channel": settings.channel, "text": without_slack_markup(text)[:LONGEST]}
        if thread:
            body["thread_ts"] = thread
        return post_message(self._http, settings.url, settings.token, body)


_AHEAD = timedelta(minutes=5)


def _lasts(seen: LeaseSeen, now: datetime) -> bool:
    """Whether the thread is to be continued. A Lease of the future would keep it for ever."""
    if seen.renewed is None or seen.renewed > shifted(now, _AHEAD):
        return False
    return now <= shifted(seen.renewed, seen.duration)


def _why(error: ClusterError) -> str:
    return f"needs {error.needs}" if error.needs else str(error)
