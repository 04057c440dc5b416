"""Mail by SMTP."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import make_msgid

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.settings import Mail, Tls
from reconciler.features.notices.transports.transport import NotSent, masked, resolved, tls_failure

PATIENCE = 10.0
"""Seconds for each answer of the server."""

_TEMPORARY = 500
"""An SMTP reply below this may be another one later."""


class MailTransport:
    """Sends one mail for each delivery, to all recipients."""

    def __init__(self, settings: Mail, patience: float = PATIENCE) -> None:
        """Send as these settings say; `patience` is the seconds for each answer."""
        self._settings, self._patience = settings, patience

    def send(self, delivery: Delivery) -> str:
        """See the port. A recipient that the server refuses is no reason to send the mail again."""
        settings = self._settings
        login: tuple[str, ...] = ()
        if settings.user is not None and settings.password is not None:
            login = (resolved(settings.user), resolved(settings.password))
        with smtp_failures(settings.server, *login), self._connected() as server:
            if login:
                server.login(*login)
            server.send_message(mail(settings, delivery))
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


def mail(settings: Mail, delivery: Delivery) -> EmailMessage:
    """Return the mail. Messages of one case have the same thread."""
    message = EmailMessage()
    message["Subject"] = delivery.title
    message["From"] = settings.from_
    recipients = (delivery.recipient,) if delivery.recipient else settings.to
    message["To"] = [Address(addr_spec=each) for each in recipients]
    message["Message-ID"] = make_msgid(domain=settings.from_.rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"
    if delivery.bad:
        message["Importance"] = "high"
    message.set_content(f"{delivery.body or chr(10).join(delivery.lines)}\n")
    return message
