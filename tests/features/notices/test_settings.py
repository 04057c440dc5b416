"""`notify`: what is refused, and that no message of ours shows what may be a secret."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from reconciler.features.notices.messages import Topic
from reconciler.features.notices.settings import NOTIFY, TRANSPORTS, Notify, entries_of
from reconciler.model.content import Secret
from reconciler.model.errors import SettingsError
from reconciler.settings.explain import explain_settings
from reconciler.settings.load import parse_settings

MAIL = "mail: {server: x, from: 'a@b', to: [c@d]}"
HOOK = "webhook: {url: 'https://example.com/'}"


def mistake(entry: str) -> str:
    with pytest.raises(SettingsError) as found:
        parse_settings(f"notify:\n- {entry}\n", "x")
    return str(found.value)


@pytest.mark.parametrize(
    "text",
    [
        "notify: [{name: a, slack: {webhook: ${SLACK_URL}}}]",
        "notify: [{name: a, slack: {webhook: '${SLACK_URL}'}}]",
        "notify:\n- name: a\n  slack:\n    webhook: ${SLACK_URL}\n",
    ],
)
def test_a_reference_needs_no_quotes(text: str) -> None:
    (entry,) = NOTIFY.of(parse_settings(text, "x"))

    assert entry.slack is not None
    assert entry.slack.webhook == Secret("${SLACK_URL}")
    assert entry.slack.webhook.names() == ("SLACK_URL",)


def test_a_mistake_behind_a_reference_has_its_place() -> None:
    assert "x:2:45: notify[0].nose: unknown key" in mistake(
        "{name: a, slack: {webhook: ${SLACK_URL}}, nose: 1}"
    )


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{name: a}", "needs exactly one of "),
        (f"{{name: a, {HOOK}, teams: {{webhook: 'https://x/'}}}}", "teams, webhook are set"),
        (f"{{name: a, {HOOK}, when: [Later]}}", "'Later' is not one of Received, Planned"),
        (f"{{name: a, {HOOK}, at: {{time: '08:00'}}, every: 1h}}", "can't be used together with `every`"),
        (f"{{name: a, {HOOK}, every: 30s}}", "is shorter than a minute"),
        (f"{{name: 'a b', {HOOK}}}", "'a b' is not a name"),
        (f"{{name: a, {HOOK}, template: x}}", "has no effect"),
        ("{name: a, teams: {webhook: 'https://x/'}, template: '{{ x }}'}", "the template uses x"),
        (
            "{name: a, alertmanager: {url: 'http://x', matchers: [job=node]}}",
            "needs one with = or =~ and {node}",
        ),
        ("{name: a, alertmanager: {url: 'http://x', matchers: ['a=~({node}']}}", "wrong regular expression"),
        ("{name: a, alertmanager: {url: 'http://x', matchers: [node]}}", "'node' is not a matcher"),
        ("{name: a, alertmanager: {url: 'http://x', duration: 5m}}", "is shorter than 10 minutes"),
        (
            "{name: a, alertmanager: {url: 'http://x'}, when: [Done]}",
            "notify[0].when: has no effect on silences",
        ),
        (f"{{name: a, {HOOK}, to: {{namespaceLabel: x}}}}", "is for `mail`, and for `slack` with a token"),
        (f"{{name: a, {MAIL}, to: {{namespaceLabel: x}}}}", "notify[0].to.domains: is missing"),
        (f"{{name: a, {MAIL}, to: {{domains: [x]}}}}", "needs either `namespaceLabel` or"),
        ("{name: a, slack: {token: x}}", "slack.channel: is missing"),
        ("{name: a, slack: {webhook: 'https://x/', thread: 1d}}", "need a `token`"),
        ("{name: a, mail: {server: x, from: a, to: [b@c]}}", "'a' is not a mail address"),
        ("{name: a, mail: {server: x, from: 'a@b', to: ['c@d, e@f']}}", "is not a mail address"),
        ("{name: a, mail: {server: x, from: 'a@b', to: [c@d], user: e}}", "`user` and `password` need each"),
        ("{name: a, mail: {server: 169.254.169.254, from: 'a@b', to: [c@d]}}", "link-local"),
        ("{name: a, webhook: {url: 'http://169.254.169.254/'}}", "link-local"),
        ("{name: a, webhook: {url: 'https://x/', headers: {'a b': c}}}", "not the name of an HTTP header"),
        (f"{{name: a, {HOOK}}}\n- {{name: a, {HOOK}}}", "'a' is also the name of notify[0]"),
    ],
)
def test_what_does_not_fit_together_is_refused(entry: str, why: str) -> None:
    assert why in mistake(entry)


@pytest.mark.parametrize(
    "entry",
    [
        "{name: a, slack: https://hooks.slack.com/SECRET}",
        "{name: a, slack: {webhook: [https://hooks.slack.com/SECRET]}}",
        "{name: a, webhook: {url: ftp://SECRET}}",
        "{name: a, webhook: {url: 'https://x/${SECRET'}}",
        "{name: a, webhook: {url: 'https://x/', headers: SECRET}}",
        "{name: a, mail: SECRET}",
    ],
)
def test_a_mistake_does_not_show_what_may_be_a_secret(entry: str) -> None:
    assert "SECRET" not in mistake(entry)


SECRETS = {
    "slack": ("token: t, channel: c, url: 'https://x'", {"slack.token"}),
    "teams": ("webhook: 'https://x/y'", {"teams.webhook"}),
    "mail": ("server: x, from: 'a@b', to: [c@d], user: u, password: p", {"mail.password"}),
    "pagerduty": ("routingKey: k", {"pagerduty.routingKey"}),
    "webhook": ("url: 'https://x', headers: {A: b}", set[str]()),
    "apprise": ("url: 'json://x'", {"apprise.url"}),
    "alertmanager": ("url: 'https://x'", set[str]()),
}
"""The keys of each transport, and those that are always secrets."""


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_secrets_of_a_transport_are_known(transport: str) -> None:
    assert transport in SECRETS, f"say here which keys of {transport} are secrets"
    keys, secrets = SECRETS[transport]
    (entry,) = NOTIFY.of(parse_settings(f"notify: [{{name: a, {transport}: {{{keys}}}}}]", "x"))

    assert {key for key, _ in entry.secrets()} == secrets
    hook = NOTIFY.of(parse_settings("notify: [{name: a, slack: {webhook: 'https://x/'}}]", "x"))[0]
    assert [key for key, _ in hook.secrets()] == ["slack.webhook"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_is_named_like_a_secret_has_the_type_of_one(transport: str) -> None:
    field = Notify.model_fields[transport].annotation
    (section,) = (kind for kind in get_args(field) if kind is not type(None))
    for key, info in section.model_fields.items():
        if re.search("url|webhook|token|key|password|secret", key):
            said = f"{transport}.{key} is shown; its type has to be Url, SecretText, or OpenUrl"
            assert "Secret" in repr(info.annotation), said


def test_settings_with_secrets_do_not_show_them() -> None:
    text = "notify: [{name: a, webhook: {url: 'https://x/SECRET', headers: {A: SECRET}}}]"
    settings = parse_settings(text, "x")

    assert "SECRET" not in repr(settings) + str(settings) + explain_settings(settings)
    assert "\n  a (webhook): all topics.\n" in explain_settings(settings)


def test_an_entry_for_the_owners_of_workloads_says_so() -> None:
    text = "notify: [{name: a, slack: {token: x, channel: ops}, to: {namespaceLabel: chat}}]"

    (line,) = [one for one in explain_settings(parse_settings(text, "x")).split("\n") if "a (slack)" in one]
    assert line.endswith(", also to the owners of workloads.")


def test_people_who_choose_no_topics_get_what_they_may_have_to_act_on() -> None:
    hook = "{webhook: 'https://x/'}"
    text = (
        f"notify: [{{name: chat, slack: {hook}}}, {{name: page, pagerduty: {{routingKey: k}}}}, "
        "{name: log, webhook: {url: 'https://x/'}}]"
    )
    chat, page, log = (entry.topics for entry in NOTIFY.of(parse_settings(text, "x")))

    asked = {"ApprovalNeeded", "WillBeMissed", "Unguarded", "Blocked", "Missed", "Failed"}
    asked |= {"SettingsRejected", "TwoReconcilers"}
    assert chat == asked | {"NoLongerMissed", "Person", "Summary"}
    assert page == asked
    assert log == set(Topic)


def test_a_message_names_the_cluster_of_the_settings_unless_its_entry_has_a_name() -> None:
    mail = "slack: {webhook: 'https://x/'}"
    text = f"cluster: prod\nnotify: [{{name: a, {mail}}}, {{name: b, cluster: other, {mail}}}]"
    assert [entry.cluster for entry in entries_of(parse_settings(text, "x"), "prod")] == ["prod", "other"]
