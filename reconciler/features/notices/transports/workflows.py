"""The transports of workflows: Slack and mail."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import make_msgid
from typing import Any, Protocol

from msgspec import Struct

from reconciler.calendar.values import literal
from reconciler.features.notices.transports.http import Http, Post
from reconciler.features.notices.transports.mail import PATIENCE, smtp_failures
from reconciler.features.notices.transports.slack import LONGEST, ThreadGone, post_message
from reconciler.features.notices.transports.transport import NotSent, Sender
from reconciler.model.errors import ClusterError
from reconciler.model.limits import without_slack_markup
from reconciler.model.moments import shifted
from reconciler.model.workflow import LeaseRef, LeaseSeen, LeaseTake, WorkflowMessage
from reconciler.report import safe
from reconciler.settings.fields import LINK_LOCAL, is_address
from reconciler.settings.sections.notify_types import Mail, Slack, SlackThread
from reconciler.settings.sections.workflows import NotifyInstance


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


_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class WorkflowMail:
    """Sends mail by SMTP, encrypted where the server can."""

    def __init__(self, settings: Mail, patience: float = PATIENCE) -> None:
        """Send as these settings say; `patience` is the seconds for each answer."""
        self._settings, self._patience = settings, patience

    def send(self, message: WorkflowMessage) -> None:
        """See the port. A password goes only over an encrypted connection, or to this host."""
        settings = self._settings
        if settings.host.startswith(LINK_LOCAL):
            raise NotSent("the address is link-local, where clouds serve credentials", refused=True)
        mail = _mail(settings, message)
        with (
            smtp_failures(settings.host, settings.user, settings.password),
            smtplib.SMTP(settings.host, settings.port, timeout=self._patience) as server,
        ):
            encrypted = _encrypted(server)
            if settings.auth:
                if not encrypted and settings.host not in _LOCAL:
                    why = f"{settings.host} has no STARTTLS, so the password is not sent to it"
                    raise NotSent(why, refused=True)
                self._login(server)
            server.send_message(mail)

    def _login(self, server: smtplib.SMTP) -> None:
        settings = self._settings
        text = f"{settings.identity}\0{settings.user}\0{settings.password}"

        def answer(challenge: bytes | None = None) -> str:
            del challenge
            return text

        server.auth("PLAIN", answer)


def _encrypted(server: smtplib.SMTP) -> bool:
    """Encrypt the connection if the server can, and return whether it can."""
    server.ehlo_or_helo_if_needed()
    if not server.has_extn("starttls"):
        return False
    server.starttls(context=ssl.create_default_context())
    return True


def _mail(settings: Mail, message: WorkflowMessage) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = safe.line(settings.subject)
    wrong = [each for each in (settings.from_, *settings.to) if not is_address(each)]
    if wrong:
        raise NotSent(f"{literal(wrong[0])} is not a mail address", refused=True)
    mail["From"] = settings.from_
    mail["To"] = [Address(addr_spec=each) for each in settings.to]
    mail["Message-ID"] = make_msgid(domain=settings.from_.rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{message.text}\n")
    return mail


class Senders(Struct, frozen=True):
    """Makes the senders; `now` is the clock (aware)."""

    http: Http
    threads: Threads
    now: Callable[[], datetime]

    def of(self, instance: NotifyInstance) -> Sender:
        """Return what sends the messages of an instance; ValueError if nothing sends those of its type."""
        match instance.settings:
            case Mail() as mail:
                # Most workflows send no mail.

                return WorkflowMail(mail)
            case Slack() as slack:
                return WorkflowSlack(slack, self.http)
            case SlackThread() as thread:
                return WorkflowThread(thread, self.http, self.threads, self.now)
        raise ValueError(f"instances.notify {instance.name}: no sender has the type {instance.type}")
