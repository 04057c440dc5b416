"""What each transport sends to a real HTTP server on loopback, and what it makes of the answers."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.notices.deliveries import delivery_of
from reconciler.features.notices.messages import Message, Topic
from reconciler.features.notices.settings import Notify
from reconciler.features.notices.transports.sending import Http, NotSent, Post
from reconciler.features.notices.transports.slack import LONGEST, shortened
from reconciler.features.notices.transports.table import TRANSPORTS, Tools, transport_of
from reconciler.features.notices.wording import runbook_of
from reconciler.model.values import replace
from tests.features.notices.following import entries, message, tools_at
from tests.support.builders import NOW, minutes
from tests.support.stub import Answer, Asked, Stub, json_answer

UTC = ZoneInfo("UTC")
OK = Answer(b"ok", content_type="text/plain")


APPRISE = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
"""apprise imports it for its mails."""


class Receiver:
    """A server and an entry of `notify` that sends to it."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.server = Stub(lambda _: self.answers.pop(0) if self.answers else OK)
        self.http = Http(total=2)

    @property
    def tools(self) -> Tools:
        return tools_at(NOW, self.http)

    @property
    def url(self) -> str:
        return self.server.url

    def entry(self, text: str) -> Notify:
        (found,) = entries(f"notify: [{{name: all, cluster: prod, {text.replace('URL', self.url)}}}]")
        return found

    def send(
        self, text: str, *messages: Message, thread: str = "", recipient: str = "", zone: str = "UTC"
    ) -> str:
        entry = self.entry(text)
        made = delivery_of(entry, messages or (message(),), ZoneInfo(zone), now=NOW)
        return transport_of(entry, self.tools).send(replace(made, thread=thread, recipient=recipient))

    def body(self, number: int = -1) -> Any:
        return json.loads(self.server.asked[number].body)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.http.close()
    made.server.close()


HOOK = "slack: {webhook: 'URL/services/SECRET'}"
BOT = "slack: {token: xoxb-SECRET, channel: ops, thread: 1d, url: 'URL'}"


def test_slack_gets_the_text_without_markup_and_mentions(receiver: Receiver) -> None:
    receiver.send(HOOK, message(text="<!channel> & <https://evil.example|click>"))

    assert receiver.server.asked[0].path == "/services/SECRET"
    text = "&lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;"
    assert receiver.body()["text"] == f"[prod] node a: drain started\n{text}"
    assert [one["text"]["text"] for one in receiver.body()["blocks"]] == [
        "[prod] node a: drain started",
        text,
    ]


def test_chats_and_mails_say_the_same_with_the_command_and_links(receiver: Receiver) -> None:
    needed = replace(
        message(Topic.APPROVAL_NEEDED, text="it needs *one*"),
        cause="approved",
        by=NOW + minutes(20),
        remedy="whoever may approve it: reconciler approve a",
    )
    page, book = "https://maintenance.example.com", runbook_of(needed)
    receiver.send(f"{HOOK}, link: '{page}'", needed)
    slack = receiver.body()
    assert slack["text"].split("\n") == [
        "[prod] node a: approval needed, by 12:20 UTC (in 20m)",
        "it needs *one*",
        "→ whoever may approve it: reconciler approve a",
        f"Page: {page}",
        f"Runbook: {book}",
    ]
    header, text, ask, links = slack["blocks"]
    assert header["text"]["text"] == "[prod] node a: approval needed, by 12:20 UTC (in 20m)"
    assert text["text"]["text"] == "it needs *\u200bone*\u200b"
    assert ask["text"]["text"] == "→ whoever may approve it: `reconciler approve a`"
    assert links["elements"][0]["text"] == f"<{page}|Page> · <{book}|Runbook>"
    receiver.answers = [Answer(status=202)]
    receiver.send(f"teams: {{webhook: 'URL/workflows/1'}}, link: '{page}'", needed)
    (attachment,) = receiver.body()["attachments"]
    card = attachment["content"]
    assert [one["text"] for one in card["body"]] == [
        "\\[prod\\] node a: approval needed, by 12:20 UTC (in 20m)",
        "it needs \\*one\\*",
        "→ whoever may approve it: reconciler approve a",
    ]
    assert [(one["title"], one["url"]) for one in card["actions"]] == [("Page", page), ("Runbook", book)]


def test_a_message_for_slack_has_as_many_blocks_as_slack_takes(receiver: Receiver) -> None:
    receiver.send(HOOK, *(message(node=f"n{number}", text=f"{'x' * number}") for number in range(60)))

    blocks = receiver.body()["blocks"]
    assert len(blocks) <= 50
    assert blocks[-1]["text"]["text"] == "… and 13 more"


def test_a_slack_webhook_has_to_answer_ok(receiver: Receiver) -> None:
    receiver.answers = [Answer(b"<html>sign in</html>")]

    with pytest.raises(NotSent, match="Slack did not answer ok"):
        receiver.send(HOOK)


def test_a_bot_begins_a_thread_and_continues_it(receiver: Receiver) -> None:
    receiver.answers = [json_answer({"ok": True, "ts": "171.5"}), json_answer({"ok": True, "ts": "171.6"})]
    began = receiver.send(BOT)
    assert receiver.send(BOT, thread=began) == began == "171.5"

    first, second = (json.loads(one.body) for one in receiver.server.asked)
    assert receiver.server.asked[0].headers["Authorization"] == "Bearer xoxb-SECRET"
    assert (first["channel"], "thread_ts" in first) == ("ops", False)
    assert second["thread_ts"] == "171.5"


def test_an_owner_gets_the_message_in_a_channel_of_its_own(receiver: Receiver) -> None:
    receiver.answers = [json_answer({"ok": True, "ts": "171.5"})]
    receiver.send(BOT, recipient="shop-alerts")

    assert receiver.body()["channel"] == "shop-alerts"


def test_a_thread_that_somebody_deleted_is_begun_again(receiver: Receiver) -> None:
    receiver.answers = [
        json_answer({"ok": False, "error": "thread_not_found"}),
        json_answer({"ok": True, "ts": "200.1"}),
    ]
    receiver.send(BOT, thread="171.5")

    assert "thread_ts" not in receiver.body()


@pytest.mark.parametrize(("why", "refused"), [("channel_not_found", True), ("ratelimited", False)])
def test_slack_says_why_it_refuses(receiver: Receiver, why: str, refused: bool) -> None:
    receiver.answers = [json_answer({"ok": False, "error": why})]

    with pytest.raises(NotSent, match=f"Slack refused: {why}") as found:
        receiver.send(BOT)
    assert found.value.refused is refused


def test_teams_gets_a_card_without_markup(receiver: Receiver) -> None:
    receiver.answers = [Answer(status=202)]
    receiver.send("teams: {webhook: 'URL/workflows/1'}", message(text="**x** [y](https://evil.example)"))

    (attachment,) = receiver.body()["attachments"]
    blocks = [one["text"] for one in attachment["content"]["body"]]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert blocks[0] == "\\[prod\\] node a: drain started"
    assert blocks[1] == "\\*\\*x\\*\\* \\[y\\](https: //evil.example)"


@pytest.mark.parametrize(
    ("count", "text"),
    [(50, "x" * 600), (300, "x"), (50, "\u7dad" * 600), (2, "\U0001f6d1" * 9000)],
    ids=["long lines", "many lines", "lines in Chinese", "a line that is too long alone"],
)
def test_a_card_stays_below_the_limit_of_teams(receiver: Receiver, count: int, text: str) -> None:
    many = [message(node=f"n{number}", text=f"{text} {number}") for number in range(count)]
    receiver.send("teams: {webhook: 'URL/workflows/1'}", *many)

    assert len(receiver.server.asked[0].body) < 28_000
    (attachment,) = receiver.body()["attachments"]
    _, first, *_, last = attachment["content"]["body"]
    assert first["text"].startswith("node n0: ")
    assert "more line" in last["text"]


PAGER = "pagerduty: {routingKey: SECRET-KEY, url: 'URL'}"


def test_pagerduty_opens_an_alert_for_a_cause_and_resolves_it(receiver: Receiver) -> None:
    receiver.answers = [Answer(status=202)] * 2
    failed = [replace(message(Topic.FAILED, node), cause="cordon failed") for node in ("a", "b")]
    receiver.send(PAGER, *failed, replace(failed[1], over=True))

    opened, resolved = (json.loads(one.body) for one in receiver.server.asked)
    assert {one.path for one in receiver.server.asked} == {"/v2/enqueue"}
    assert opened["dedup_key"] == resolved["dedup_key"] == "prod: cordon failed"
    assert (opened["event_action"], resolved["event_action"]) == ("trigger", "resolve")
    assert opened["payload"]["severity"] == "error"
    assert opened["payload"]["summary"] == "[prod] 2 nodes: failed: it is: a, b"
    assert opened["payload"]["source"] == "a"
    assert opened["payload"]["custom_details"]["count"] == 2


def test_an_alert_has_the_time_that_is_left_the_command_and_where_to_look(receiver: Receiver) -> None:
    text = "it needs one; reconciler approve a"
    needed = [
        replace(
            message(Topic.APPROVAL_NEEDED, f"n{number}", text=text),
            cause="approved",
            pool="np",
            by=NOW + minutes(14 + number),
            remedy=f"whoever may approve it: reconciler approve n{number}",
        )
        for number in range(20)
    ]
    receiver.answers = [Answer(status=202)]
    receiver.send(f"{PAGER}, link: 'https://maintenance.example.com'", *needed, zone="Europe/Berlin")

    sent = receiver.body()
    date = "13:14 CET (Europe/Berlin) (in 14m)"
    assert sent["payload"]["summary"].startswith(f"[prod] 20 nodes of np: approval needed, by {date}: ")
    assert sent["payload"]["custom_details"]["by"] == date
    assert sent["payload"]["custom_details"]["command"].endswith("reconciler approve --pool np")
    assert sent["client_url"] == "https://maintenance.example.com"
    assert [one["text"] for one in sent["links"]] == ["Page", "Runbook"]
    assert sent["links"][1]["href"].endswith("/docs/runbooks/NodeMaintenanceWillBeMissed.md")


def test_pagerduty_gets_moments_as_people_read_them(receiver: Receiver) -> None:
    said = "it starts at 2026-11-21T12:00:00Z"
    receiver.answers = [Answer(status=202)]
    receiver.send(PAGER, message(Topic.BLOCKED, text=said), zone="Europe/Berlin")

    summary = receiver.body()["payload"]["summary"]
    assert summary == "[prod] node a: drain blocked: it starts at 13:00 CET (Europe/Berlin) (now)"


def test_pagerduty_gets_problems_and_no_end_of_a_case(receiver: Receiver) -> None:
    topics = receiver.entry("pagerduty: {routingKey: key}").topics

    assert Topic.RECEIVED not in topics
    assert Topic.MISSED in topics
    assert Topic.DONE not in receiver.entry("pagerduty: {routingKey: key}, when: [Missed, Done]").topics


def test_one_message_is_a_cloud_event(receiver: Receiver) -> None:
    sent = message(Topic.BLOCKED)
    receiver.send("webhook: {url: 'URL/events', headers: {Authorization: Bearer SECRET}}", sent)

    asked = receiver.server.asked[0]
    assert asked.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert asked.headers["Authorization"] == "Bearer SECRET"
    event = receiver.body()
    assert {key: event[key] for key in ("specversion", "id", "source", "type", "subject", "time")} == {
        "specversion": "1.0",
        "id": sent.id,
        "source": "/node-maintenance-reconciler/prod",
        "type": "dev.node-maintenance.notice.Blocked",
        "subject": "a",
        "time": "2026-11-21T12:00:00Z",
    }
    assert event["data"]["text"] == "it is"


def test_a_message_about_the_cluster_names_no_node(receiver: Receiver) -> None:
    about = message(Topic.TWO_RECONCILERS, node="")
    receiver.send("webhook: {url: 'URL/events'}", about)
    # CloudEvents permits no empty subject, PagerDuty no empty source.
    assert "subject" not in receiver.body()
    receiver.send("pagerduty: {routingKey: KEY, url: 'URL'}", about)
    payload = receiver.body()["payload"]
    assert payload["summary"] == "[prod] the cluster: two reconcilers: it is"
    assert (payload["source"], payload["severity"]) == ("prod", "error")
    receiver.send(HOOK, about, message(node="b"))
    assert receiver.body()["text"].split("\n") == [
        "[prod] the cluster: two reconcilers; and 1 more",
        "the cluster: two reconcilers: it is",
        "node b: drain started: it is",
        f"Runbook: {runbook_of(about)}",
    ]


def test_several_messages_are_a_batch_of_cloud_events(receiver: Receiver) -> None:
    receiver.send("webhook: {url: 'URL/events'}", message(), message(node="b"))

    assert receiver.server.asked[0].headers["Content-Type"].startswith("application/cloudevents-batch+json")
    assert [one["subject"] for one in receiver.body()] == ["a", "b"]


@pytest.mark.parametrize(
    ("answer", "tries", "refused", "retry_after"),
    [
        pytest.param(Answer(b"no", 404), 1, True, None, id="not found"),
        pytest.param(Answer(b"no", 500), 3, False, None, id="a failure is tried again"),
        pytest.param(Answer(b"no", 429, headers={"Retry-After": "120"}), 1, False, 120.0, id="patience"),
        pytest.param(Answer(b"no", 302, headers={"Location": "/other"}), 1, True, None, id="a redirect"),
    ],
)
def test_what_may_pass_is_tried_again(
    receiver: Receiver, answer: Answer, tries: int, refused: bool, retry_after: float | None
) -> None:
    receiver.answers = [answer] * 3

    with pytest.raises(NotSent, match=f"answered {answer.status}: no") as found:
        receiver.send("webhook: {url: 'URL/events'}")
    assert len(receiver.server.asked) == tries
    assert (found.value.refused, found.value.retry_after) == (refused, retry_after)


def test_a_server_that_never_answers_takes_a_bounded_time(receiver: Receiver) -> None:
    receiver.http = Http(total=0.1)
    receiver.answers = [Answer(hang=True)] * 3

    with pytest.raises(NotSent, match="no answer in time"):
        receiver.send("webhook: {url: 'URL/events'}")


REFUSED = (
    HOOK,
    BOT,
    "teams: {webhook: 'URL/workflows/SECRET'}",
    "pagerduty: {routingKey: SECRET-KEY, url: 'URL'}",
    "webhook: {url: 'URL/SECRET', headers: {X-Token: SECRET-2}}",
)


def test_every_transport_that_posts_is_refused_once() -> None:
    posting = {name for name, made in TRANSPORTS.items() if made.startswith("posts:")}
    missing = posting - {text.partition(":")[0] for text in REFUSED}
    assert not missing, f"say in REFUSED with which secrets {missing} sends"


@pytest.mark.parametrize("text", REFUSED)
def test_no_error_shows_a_secret(receiver: Receiver, text: str) -> None:
    """The server repeats in its answer what it was sent."""
    receiver.server.close()
    echo = Stub(lambda asked: Answer(f"{asked.path} {asked.headers} {asked.body!r}".encode(), 400))
    try:
        receiver.server = echo
        with pytest.raises(NotSent) as found:
            receiver.send(text)
    finally:
        echo.close()
    assert "SECRET" not in str(found.value)
    with pytest.raises(NotSent) as away:
        receiver.send(text)
    assert "SECRET" not in str(away.value)


def test_secrets_come_from_the_environment_and_from_files(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("from-file\n", encoding="utf-8")
    monkeypatch.setenv("HOOK_PLACE", f"{receiver.url}/hook")
    text = f"webhook: {{url: '${{HOOK_PLACE}}', headers: {{X-Token: 'T ${{file:{tmp_path}/token}}'}}}}"
    receiver.send(text)

    assert receiver.server.asked[0].path == "/hook"
    assert receiver.server.asked[0].headers["X-Token"] == "T from-file"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("${NOT_THERE}", "the environment has no NOT_THERE"),
        ("${file:/not/there}", "/not/there can't be read: No such file or directory"),
        ("${METADATA}", "the URL is a link-local address"),
    ],
)
def test_a_secret_that_is_missing_or_wrong_says_what_to_change(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, value: str, why: str
) -> None:
    monkeypatch.setenv("METADATA", "http://169.254.169.254/latest")
    with pytest.raises(NotSent, match=why) as found:
        receiver.send(f"webhook: {{url: '{value}'}}")
    assert found.value.refused


@APPRISE
def test_apprise_sends_by_its_url_and_needs_its_extra(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = receiver.url.replace("http://", "json://")
    receiver.send(f"apprise: {{url: '{url}/hook'}}", message(Topic.MISSED))

    assert receiver.body()["title"] == "[prod] node a: missed"
    assert receiver.body()["message"].startswith("it is\n")
    assert receiver.body()["type"] == "warning"
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(NotSent, match=r"the extra \[notify\] is not installed"):
        receiver.send(f"apprise: {{url: '{url}/hook'}}")


@APPRISE
@pytest.mark.parametrize(
    ("url", "why", "refused"),
    [
        ("nothing-like-it://SECRET", "apprise can't read this URL", True),
        ("json://169.254.169.254/SECRET", "link-local", True),
        ("json://127.0.0.1:1/SECRET", "apprise could not send it", False),
    ],
)
def test_apprise_says_why_it_sends_nothing_and_logs_no_secret(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, url: str, why: str, refused: bool
) -> None:
    with pytest.raises(NotSent, match=why) as found:
        receiver.send(f"apprise: {{url: '{url}'}}")
    assert found.value.refused is refused
    assert "SECRET" not in caplog.text


def test_entries_that_send_to_one_server_at_the_same_time_log_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    together, http = threading.Barrier(2), Http(total=10)

    def answer(asked: Asked) -> Answer:
        del asked
        together.wait(10)
        return OK

    server = Stub(answer)
    with ThreadPoolExecutor(2) as threads:
        replies = list(threads.map(http.send, [Post(server.url), Post(server.url)]))
    http.close()
    server.close()

    assert [one.status for one in replies] == [200, 200]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("line\n" * 10, "line\n"),
        ("x" * (LONGEST + 1), "x…"),
        ("line\n" * LONGEST, "line\n… and 9,611 more lines"),
    ],
)
def test_a_text_that_is_too_long_for_slack_says_how_much_is_missing(text: str, ends: str) -> None:
    assert len(shortened(text)) <= LONGEST
    assert shortened(text).endswith(ends)


def test_a_template_makes_the_text_of_chats_and_mails(receiver: Receiver) -> None:
    text = "'{% for one in messages %}{{ one.node }} {{ one.text }}{% endfor %}'"
    entry = receiver.entry(f"{HOOK}, template: {text}")
    delivery = delivery_of(entry, (message(text="<b>\x1b[1m"),), UTC)
    assert entry.template is not None
    transport_of(entry, receiver.tools).send(delivery.with_template(entry.template, lambda: False))

    assert receiver.body() == {"text": "a &lt;b&gt;\\x1b[1m"}


def test_a_template_that_fails_loses_no_message(receiver: Receiver) -> None:
    entry = receiver.entry(f"{HOOK}, template: '{{{{ messages[7].node }}}}'")
    assert entry.template is not None
    made = delivery_of(entry, (message(),), UTC).with_template(entry.template, lambda: False)

    assert made.text.startswith("[prod] node a: drain started\nit is\nThe template failed: Undefined")
