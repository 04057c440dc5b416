"""The instance type `mail` of workflows: a mail for each message, as maintenance-controller sends it."""

from __future__ import annotations

import smtplib
import ssl
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import make_msgid

from reconciler.calendar.values import literal
from reconciler.features.notices.transports.mail import PATIENCE, smtp_failures
from reconciler.features.notices.transports.transport import NotSent
from reconciler.model.workflow_message import WorkflowMessage
from reconciler.report import safe
from reconciler.settings.sections.notify import LINK_LOCAL, is_address
from reconciler.settings.sections.notify_types import Mail

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
