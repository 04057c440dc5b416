"""Mail by SMTP, of entries of `notify` and of notifications of workflows."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import make_msgid
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from reconciler.calendar.values import literal
from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.settings import Mail, Tls
from reconciler.features.notices.transports.sending import NotSent, masked, resolved, tls_failure
from reconciler.model.content import Secret
from reconciler.report import safe
from reconciler.settings.fields import LINK_LOCAL, is_address

if TYPE_CHECKING:
    from reconciler.features.notices.transports.table import Tools

PATIENCE = 10.0
"""Seconds for each answer of the server."""

_TEMPORARY = 500
"""An SMTP reply below this may be another one later."""


class MailTransport:
    """Sends one mail for each delivery, to all recipients."""

    def __init__(self, settings: Mail, tools: Tools, patience: float = PATIENCE) -> None:
        """Send as these settings say; `patience` is the seconds for each answer."""
        self._settings, self._now, self._patience = settings, tools.now, patience

    def send(self, delivery: Delivery) -> str:
        """Send one mail to all recipients. It is not sent again for a recipient that the server refuses."""
        settings = self._settings
        login: tuple[str, ...] = ()
        if settings.user is not None and settings.password is not None:
            login = (resolved(settings.user), resolved(settings.password))
        with smtp_failures(settings.server, *login), self._connected() as server:
            if login:
                server.login(*login)
            to = (delivery.recipient,) if delivery.recipient else settings.to
            mail = mail_of(delivery.title, settings.from_, to, delivery.rest, self._now())
            if delivery.bad:
                mail["Importance"] = "high"
            server.send_message(mail)
        return ""

    def _connected(self) -> smtplib.SMTP:
        settings = self._settings
        if settings.tls is Tls.IMPLICIT:
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(settings.server, settings.port, timeout=self._patience, context=context)
        server = smtplib.SMTP(settings.server, settings.port, timeout=self._patience)
        if settings.tls is Tls.START_TLS:
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server


@contextmanager
def smtp_failures(host: str, *secrets: str) -> Iterator[None]:
    """Raise NotSent, without these secrets, for whatever fails inside in the mail server at `host`."""
    try:
        yield
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({code for code, _ in error.recipients.values()})
        refused = all(code >= _TEMPORARY for code in codes)
        raise NotSent(f"every recipient was refused: {codes}", refused=refused) from None
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        why = masked(f"{error.smtp_code} {text[:100]}", *secrets)
        raise NotSent(f"{host} answered {why}", refused=error.smtp_code >= _TEMPORARY) from None
    except smtplib.SMTPNotSupportedError as error:
        raise NotSent(f"{host}: {masked(str(error), *secrets)[:100]}", refused=True) from None
    except ssl.SSLError as error:
        raise NotSent(f"{host}: {tls_failure(error)}") from None
    except (smtplib.SMTPException, OSError) as error:
        # smtplib hides a timeout behind a connection that it closed itself.
        late = isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError)
        raise NotSent(f"{host}: {'no answer in time' if late else 'no connection, or it was cut'}") from None


def mail_of(subject: str, sender: str, to: Iterable[str], text: str, at: datetime) -> EmailMessage:
    """Return the mail that is sent `at` a moment (aware); NotSent for an address that is none."""
    to = tuple(to)
    if wrong := [address for address in (sender, *to) if not is_address(address)]:
        raise NotSent(f"{literal(wrong[0])} is not a mail address", refused=True)
    mail = EmailMessage()
    mail["Date"] = at
    mail["Subject"] = safe.line(subject)
    mail["From"] = sender
    mail["To"] = [Address(addr_spec=address) for address in to]
    mail["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{text}\n")
    return mail


_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class MailTo(Struct, frozen=True):
    """Mail by the SMTP server `host`, to these addresses. With `auth`, the login has the three secrets."""

    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    subject: str
    auth: bool
    identity: Secret
    user: Secret
    password: Secret


class WorkflowMail:
    """Sends mail by SMTP, encrypted where the server can."""

    def __init__(self, to: Mapping[str, Any], tools: Tools) -> None:
        """Send to this place, see `MailTo`."""
        self._settings, self._now = MailTo(**to), tools.now

    def send(self, delivery: Delivery) -> str:
        """Send the mail. A password goes only over an encrypted connection, or to this host."""
        settings = self._settings
        if settings.host.startswith(LINK_LOCAL):
            raise NotSent("the address is link-local, where clouds serve credentials", refused=True)
        mail = mail_of(settings.subject, settings.sender, settings.to, delivery.body, self._now())
        with (
            smtp_failures(settings.host, settings.user.text, settings.password.text),
            smtplib.SMTP(settings.host, settings.port, timeout=PATIENCE) as server,
        ):
            server.ehlo_or_helo_if_needed()
            encrypted = server.has_extn("starttls")
            if encrypted:
                server.starttls(context=ssl.create_default_context())
            if settings.auth:
                if not encrypted and settings.host not in _LOCAL:
                    why = f"{settings.host} has no STARTTLS, so the password is not sent to it"
                    raise NotSent(why, refused=True)
                plain = f"{settings.identity.text}\0{settings.user.text}\0{settings.password.text}"
                server.auth("PLAIN", lambda challenge=None: plain)
            server.send_message(mail)
        return ""
