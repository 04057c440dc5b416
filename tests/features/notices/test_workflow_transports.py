"""What the instances of workflows send to real servers on loopback, and what they make of the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.transports.sending import Http, NotSent, Transport
from reconciler.features.notices.transports.table import INSTANCES, Tools, transport_of
from reconciler.features.workflows.notify_types import NOTIFY_TYPES
from reconciler.model.errors import Forbidden
from reconciler.model.leases import LeaseRef, LeaseSeen, LeaseTake
from reconciler.model.messages import MessageReceiver
from reconciler.model.values import replace
from reconciler.settings.load import parse_settings
from tests.support.builders import NOW
from tests.support.fakes.smtp import FakeSmtp
from tests.support.stub import Answer, Asked, Stub, json_answer

MESSAGE = Delivery("instances.notify/tell", (), "nodes & more", (), body="<!here> a &amp; b")


def instance(kind: str, keys: str) -> MessageReceiver:
    text = f"instances: {{notify: [{{name: tell, type: {kind}, config: {{message: m, {keys}}}}}]}}"
    (found,) = parse_settings(text, "x.yaml").receivers
    return found


@dataclass
class Leases:
    """The Lease of one thread, and errors of the next writes."""

    seen: LeaseSeen | None = None
    fails: list[Exception] = field(default_factory=list)
    taken: list[LeaseTake] = field(default_factory=list)

    def lease(self, ref: LeaseRef) -> LeaseSeen | None:
        assert str(ref) == "ops/slack"
        return self.seen

    def take_lease(self, take: LeaseTake) -> None:
        if self.fails:
            raise self.fails.pop(0)
        self.taken.append(take)
        self.seen = LeaseSeen(take.holder, take.at, take.duration)


class Slack:
    """A server like Slack's, which numbers the messages."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.server = Stub(self._answer)
        self.leases = Leases()
        self.now = NOW
        self.tools = Tools(Http(total=2), self.leases, lambda: self.now)

    def _answer(self, asked: Asked) -> Answer:
        return self.answers.pop(0) if self.answers else json_answer({"ok": True, "ts": f"171.{asked.number}"})

    def to(self, receiver: MessageReceiver) -> Transport:
        return transport_of(receiver, self.tools)

    def hook(self) -> MessageReceiver:
        return instance("slack", f"hook: '{self.server.url}/services/SECRET', channel: ops")

    def thread(self) -> MessageReceiver:
        keys = "token: xoxb-SECRET, channel: ops, title: t, leaseName: slack, leaseNamespace: ops, period: 1h"
        return instance("slackThread", f"{keys}, url: '{self.server.url}'")

    @property
    def posted(self) -> list[Any]:
        return [json.loads(one.body) for one in self.server.asked]

    def texts(self) -> list[tuple[str, str]]:
        """The thread and the text of each message."""
        return [(one.get("thread_ts", ""), one["text"]) for one in self.posted]


@pytest.fixture
def slack() -> Iterator[Slack]:
    made = Slack()
    yield made
    made.server.close()


@pytest.fixture
def smtp() -> Iterator[FakeSmtp]:
    with FakeSmtp() as server:
        yield server


def test_each_type_of_notification_has_a_transport() -> None:
    assert set(INSTANCES) == set(NOTIFY_TYPES), "INSTANCES in transports/table.py has other types"


def test_a_webhook_gets_the_text_as_its_template_made_it(slack: Slack) -> None:
    slack.answers = [Answer(b"ok")]
    slack.to(slack.hook()).send(MESSAGE)

    assert slack.server.asked[0].path == "/services/SECRET"
    assert slack.posted == [{"text": "<!here> a &amp; b", "channel": "ops"}]


def test_nothing_is_sent_to_a_link_local_address(slack: Slack) -> None:
    mail = "address: '169.254.1.1:25', from: a@b.c, to: [d@e.f]"
    for one in (instance("slack", "hook: 'http://169.254.1.1/x', channel: c"), instance("mail", mail)):
        with pytest.raises(NotSent, match="link-local") as found:
            slack.to(one).send(MESSAGE)
        assert found.value.refused


THREAD = "171.0"
TITLE = ("", "nodes &amp; more")
REPLY = "&lt;!here&gt; a &amp;amp; b"


def test_a_thread_begins_with_its_title_and_goes_on_for_its_period(slack: Slack) -> None:
    sender = slack.to(slack.thread())
    sender.send(MESSAGE)
    slack.now += timedelta(hours=1)
    sender.send(MESSAGE)
    slack.now += timedelta(seconds=1)
    sender.send(MESSAGE)

    assert slack.texts() == [TITLE, (THREAD, REPLY), (THREAD, REPLY), TITLE, ("171.3", REPLY)]
    assert slack.server.asked[0].headers["Authorization"] == "Bearer xoxb-SECRET"
    assert {one["channel"] for one in slack.posted} == {"ops"}
    first, second = slack.leases.taken
    assert (first.holder, first.at, first.duration, first.seen) == (THREAD, NOW, timedelta(hours=1), None)
    assert (second.holder, second.seen and second.seen.holder) == ("171.3", THREAD)


def test_another_process_goes_on_with_the_thread_of_the_lease(slack: Slack) -> None:
    slack.leases.seen = LeaseSeen("99.1", NOW - timedelta(minutes=59), timedelta(hours=1))
    slack.to(slack.thread()).send(MESSAGE)

    assert slack.texts() == [("99.1", REPLY)]
    assert slack.leases.taken == []


@pytest.mark.parametrize(
    ("holder", "renewed"), [("", NOW), ("99.1", None), ("99.1", NOW + timedelta(days=9))]
)
def test_a_lease_that_makes_no_sense_begins_a_new_thread(
    slack: Slack, holder: str, renewed: datetime | None
) -> None:
    slack.leases.seen = LeaseSeen(holder, renewed, timedelta(hours=1))
    slack.to(slack.thread()).send(MESSAGE)

    assert slack.texts() == [TITLE, (THREAD, REPLY)]


def test_a_thread_that_somebody_deleted_begins_again(slack: Slack) -> None:
    slack.leases.seen = LeaseSeen("99.1", NOW, timedelta(hours=1))
    slack.answers = [json_answer({"ok": False, "error": "thread_not_found"})]
    slack.to(slack.thread()).send(MESSAGE)

    assert slack.texts() == [("99.1", REPLY), TITLE, ("171.1", REPLY)]
    assert slack.leases.seen.holder == "171.1"


def test_a_lease_that_can_not_be_written_is_reported_and_the_title_comes_once(slack: Slack) -> None:
    missing = Forbidden("no", needs="create leases.coordination.k8s.io in ops")
    slack.leases.fails = [missing, missing]
    sender = slack.to(slack.thread())
    for _ in range(2):
        with pytest.raises(NotSent, match="the Lease ops/slack can't be written: needs create leases"):
            sender.send(MESSAGE)
    sender.send(MESSAGE)

    assert slack.texts() == [TITLE, (THREAD, REPLY)]


def test_a_token_is_in_no_error(slack: Slack) -> None:
    slack.answers = [json_answer({"ok": False, "error": "bad xoxb-SECRET"})]

    with pytest.raises(NotSent, match="Slack refused") as found:
        slack.to(slack.thread()).send(MESSAGE)
    assert "SECRET" not in str(found.value)


def mail(
    smtp: FakeSmtp, keys: str = "", to: str = "[a@example.com, b@example.com]", host: str = "127.0.0.1"
) -> MessageReceiver:
    more = f", {keys}" if keys else ""
    address = f"address: '{host}:{smtp.port}', from: nodes@example.com, to: {to}, subject: Nodes"
    return instance("mail", f"{address}{more}")


def test_a_mail_goes_to_all_recipients(slack: Slack, smtp: FakeSmtp) -> None:
    message = replace(MESSAGE, body="Käse\n.\nBcc: c@example.com")
    slack.to(mail(smtp)).send(message)

    (got,) = smtp.box.mails
    assert smtp.box.recipients == [["a@example.com", "b@example.com"]]
    assert (got["Subject"], got["From"]) == ("Nodes", "nodes@example.com")
    assert got.get_content().splitlines() == ["Käse", ".", "Bcc: c@example.com"]
    assert smtp.box.logins == []


def test_a_mail_server_gets_the_login(slack: Slack, smtp: FakeSmtp) -> None:
    slack.to(mail(smtp, "auth: true, user: bot, password: SECRET")).send(MESSAGE)

    assert smtp.box.logins == [("bot", "SECRET")]
    assert len(smtp.box.mails) == 1


def test_a_password_goes_only_over_encryption_or_to_this_host(slack: Slack, smtp: FakeSmtp) -> None:
    # It is this host, but a name may come from anybody.
    other = mail(smtp, "auth: true, user: bot, password: SECRET", host="127.1")

    with pytest.raises(NotSent, match=r"127\.1 has no STARTTLS, so the password is not sent to it"):
        slack.to(other).send(MESSAGE)
    assert (smtp.box.logins, smtp.box.mails) == ([], [])


def test_a_refusal_of_a_mail_shows_no_password(slack: Slack, smtp: FakeSmtp) -> None:
    smtp.box.refuses["AUTH"] = "535 no SECRET-PASSWORD"

    with pytest.raises(NotSent, match="535") as found:
        slack.to(mail(smtp, "auth: true, user: bot, password: SECRET-PASSWORD")).send(MESSAGE)
    assert found.value.refused
    assert "SECRET" not in str(found.value)


def test_an_address_that_begins_another_header_is_refused(slack: Slack, smtp: FakeSmtp) -> None:
    with pytest.raises(NotSent, match="is not a mail address"):
        slack.to(mail(smtp, to='["a@example.com\\nBcc: c@example.com"]')).send(MESSAGE)
    assert smtp.box.mails == []
