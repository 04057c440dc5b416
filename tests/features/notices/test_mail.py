"""Mail to an SMTP server on loopback, and what its refusals mean."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.notices.deliveries import delivery_of
from reconciler.features.notices.messages import Message, Topic
from reconciler.features.notices.transports.mail import MailTransport
from reconciler.features.notices.transports.sending import NotSent
from reconciler.model.values import replace
from tests.features.notices.following import entries, message, tools_at
from tests.support.builders import NOW
from tests.support.fakes.smtp import FakeSmtp

LOGIN = "user: bot, password: SECRET-PASSWORD"


@pytest.fixture
def smtp() -> Iterator[FakeSmtp]:
    with FakeSmtp() as server:
        yield server


def send(
    smtp: FakeSmtp,
    *messages: Message,
    keys: str = "",
    tls: str = "None",
    patience: float = 5,
    recipient: str = "",
) -> None:
    addresses = "from: nodes@example.com, to: [a@example.com, b@example.com]"
    more = f", {keys}" if keys else ""
    mail = f"mail: {{server: 127.0.0.1, port: {smtp.port}, tls: {tls}, {addresses}{more}}}"
    (entry,) = entries(f"notify: [{{name: all, cluster: prod, {mail}}}]")
    assert entry.mail is not None
    delivery = delivery_of(entry, messages or (message(Topic.MISSED),), ZoneInfo("UTC"))
    transport = MailTransport(entry.mail, tools_at(NOW), patience=patience)
    transport.send(replace(delivery, recipient=recipient))


def test_a_delivery_is_one_mail_to_all_recipients(smtp: FakeSmtp) -> None:
    send(smtp, message(text="Käse\n.\nBcc: c@example.com"), message(node="b"))

    (mail,) = smtp.box.mails
    assert smtp.box.recipients == [["a@example.com", "b@example.com"]]
    assert mail["Subject"] == "[prod] 2 nodes: 2 drain started"
    assert (mail["From"], mail["To"]) == ("nodes@example.com", "a@example.com, b@example.com")
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"].datetime == NOW
    assert mail["Importance"] is None
    assert mail.get_content().splitlines() == [
        "node a: drain started: Käse . Bcc: c@example.com",
        "node b: drain started: it is",
    ]


def test_a_problem_is_important(smtp: FakeSmtp) -> None:
    send(smtp, message(Topic.MISSED))

    assert smtp.box.mails[0]["Importance"] == "high"


def test_a_server_that_wants_a_login_gets_it(smtp: FakeSmtp) -> None:
    send(smtp, keys=LOGIN)

    assert smtp.box.logins == [("bot", "SECRET-PASSWORD")]
    assert len(smtp.box.mails) == 1


@pytest.mark.parametrize(
    ("command", "reply", "refused"),
    [
        ("AUTH", "535 no SECRET-PASSWORD", True),
        ("MAIL", "550 not from you", True),
        ("MAIL", "451 later", False),
        ("RCPT", "550 nobody", True),
        ("RCPT", "450 later", False),
        ("DATA", "452 no space", False),
    ],
)
def test_a_refusal_says_whether_a_later_try_may_succeed(
    smtp: FakeSmtp, command: str, reply: str, refused: bool
) -> None:
    smtp.box.refuses[command] = reply

    with pytest.raises(NotSent, match=reply[:3]) as found:
        send(smtp, keys=LOGIN)
    assert found.value.refused is refused
    assert "SECRET" not in str(found.value)
    assert smtp.box.mails == []


def test_a_password_is_not_sent_without_encryption_that_was_asked_for(smtp: FakeSmtp) -> None:
    with pytest.raises(NotSent, match="STARTTLS"):
        send(smtp, keys=LOGIN, tls="StartTls")

    assert smtp.box.logins == []


def test_a_server_that_says_nothing_takes_a_bounded_time(smtp: FakeSmtp) -> None:
    smtp.box.silent = True

    with pytest.raises(NotSent, match="no answer in time"):
        send(smtp, patience=0.1)


def test_an_owner_gets_a_mail_of_its_own(smtp: FakeSmtp) -> None:
    send(smtp, recipient="shop@example.com")

    assert smtp.box.recipients == [["shop@example.com"]]
