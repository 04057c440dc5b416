"""`notify`: who gets which notices, how, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, get_args

from annotated_types import Len
from msgspec import Struct
from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from reconciler.calendar.notice_times import EVERY_DAY
from reconciler.calendar.values import TimeOfDay, format_days, format_duration, literal, parse_time
from reconciler.features.notices.messages import USUAL, Message, Topic, mark_of
from reconciler.features.notices.templates import LONGEST, mistake_in
from reconciler.model.content import Secret
from reconciler.model.event import Kind
from reconciler.model.moments import shifted
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.model.values import replace
from reconciler.settings.fields import (
    TEXT,
    Days,
    Duration,
    Header,
    Host,
    SecretText,
    Section,
    Selector,
    Text,
    Url,
    Zone,
    for_nodes,
    is_address,
)
from reconciler.settings.mistakes import KeyWarning, Mistake, Mistakes
from reconciler.settings.schema import FeatureSection, Mode, Settings

MOST = 20
"""Entries of `notify`."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(
            f"{literal(value)} is not a name of letters, digits, '.', '-' and '_', at most 63 of them"
        )
    return value


Name = Annotated[str, PlainValidator(_name), WithJsonSchema(TEXT)]
Time = Annotated[TimeOfDay, PlainValidator(parse_time), WithJsonSchema({"type": "string"})]


def _page_url(value: object) -> str:
    if not isinstance(value, str) or not _PAGE.fullmatch(value):
        raise ValueError(f"{literal(value)} is not a URL; write it like https://maintenance.example.com")
    return value


_PAGE = re.compile(r"https?://[^\s<>|]{1,500}")
PageUrl = Annotated[str, PlainValidator(_page_url), WithJsonSchema(TEXT)]


OPEN = "open"
"""Marks a value that the settings may show, though it can be named like a secret."""

OpenUrl = Annotated[Url, OPEN]


class Tls(StrEnum):
    """How the connection to a mail server is encrypted."""

    START_TLS = "StartTls"
    IMPLICIT = "Implicit"
    NONE = "None"


class TransportSection(Section):
    """How messages are sent. An entry has exactly one."""


class Slack(TransportSection):
    """Slack: an incoming webhook, or a bot's token and a channel."""

    webhook: Url | None = Field(default=None, description="The URL of an incoming webhook. Default: none.")
    token: SecretText | None = Field(
        default=None, description="A bot's token (scope `chat:write`), instead. Default: none."
    )
    channel: Text | None = Field(default=None, description="The bot's channel, by ID or name. Default: none.")
    thread: Duration = Field(
        default=timedelta(), description="With a token: how long messages go to one thread."
    )
    url: OpenUrl = Field(
        default=Secret("https://slack.com"), description="The server. Default: `https://slack.com`."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Slack:
        if (self.webhook is None) == (self.token is None):
            raise Mistakes((Mistake((), "needs either a `webhook`, or a `token` and a `channel`"),))
        if self.token is not None and self.channel is None:
            raise Mistakes((Mistake(("channel",), "is missing; a token needs one"),))
        if self.webhook is not None and (self.channel is not None or self.thread):
            raise Mistakes((Mistake((), "`channel` and `thread` need a `token`, not a webhook"),))
        return self


class Teams(TransportSection):
    """Microsoft Teams: a workflow that posts what it receives."""

    webhook: Url = Field(
        description="The URL of a workflow, trigger `When a Teams webhook request is received`."
    )


class Mail(TransportSection):
    """Mail by SMTP."""

    server: Host = Field(description="The SMTP server.")
    port: int = Field(default=587, ge=1, le=65535, description="Its port.")
    tls: Tls = Field(
        default=Tls.START_TLS,
        description="Encryption. StartTls: after the greeting. Implicit: from the start, usually on port "
        "465. None: for a relay on the same host.",
    )
    user: Annotated[SecretText | None, OPEN] = Field(
        default=None, description="The user. Default: none, and no login."
    )
    password: SecretText | None = Field(default=None, description="The user's password. Default: none.")
    from_: Text = Field(alias="from", description="The sender. Default: none, it is required.")
    to: tuple[Text, ...] = Field(
        max_length=50, description="The recipients. Default: none, at least one is required."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Mail:
        if (self.user is None) != (self.password is None):
            raise Mistakes((Mistake((), "`user` and `password` need each other"),))
        addresses = ((("from",), self.from_), *((("to", index), each) for index, each in enumerate(self.to)))
        wrong = [
            Mistake(path, f"{literal(each)} is not a mail address")
            for path, each in addresses
            if not is_address(each)
        ]
        if not self.to:
            wrong.append(Mistake(("to",), "has no recipients"))
        if wrong:
            raise Mistakes(tuple(wrong))
        return self


class PagerDuty(TransportSection):
    """PagerDuty: an alert for each cause of a problem, resolved when it is over, and one for misses."""

    routing_key: SecretText = Field(description="The integration key (Events API v2).")
    url: OpenUrl = Field(
        default=Secret("https://events.pagerduty.com"),
        description="The server, in the EU `https://events.eu.pagerduty.com`. Default: "
        "`https://events.pagerduty.com`.",
    )


class Webhook(TransportSection):
    """Any HTTP server: each message is a CloudEvent 1.0."""

    url: OpenUrl = Field(description="Where they are posted.")
    headers: dict[Header, SecretText] = Field(
        default={}, description="Further headers; secrets. Default: none."
    )


class Apprise(TransportSection):
    """Whatever apprise can send to."""

    url: SecretText = Field(description="A URL of apprise, such as `matrix://…`.")


class Matcher(Struct, frozen=True):
    """A matcher of a silence. In a setting, `{node}` in its value stands for the name of the node."""

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    def of(self, node: str) -> Matcher:
        """Return the matcher for a node."""
        return replace(self, value=self.value.replace(NODE, re.escape(node) if self.is_regex else node))

    def __str__(self) -> str:
        """Write it as the settings have it."""
        operator = {(True, False): "=", (True, True): "=~", (False, False): "!=", (False, True): "!~"}
        return f"{self.name}{operator[self.is_equal, self.is_regex]}{self.value}"


NODE = "{node}"
_MATCHER = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,127})\s*(=~|!~|!=|=)\s*(.{1,500})")


def _matcher(value: object) -> Matcher:
    if isinstance(value, Matcher):
        return value
    found = _MATCHER.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(
            f"{literal(value)} is not a matcher; write it like node={NODE} or instance=~{NODE}:.*"
        )
    name, operator, text = found.groups()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    matcher = Matcher(name, text, is_regex="~" in operator, is_equal=operator in ("=", "=~"))
    if matcher.is_regex:
        try:
            re.compile(matcher.of("a").value)
        except re.error as error:
            raise ValueError(f"{literal(value)} has a wrong regular expression: {error}") from error
    return matcher


MatcherText = Annotated[Matcher, PlainValidator(_matcher), WithJsonSchema(TEXT)]


class Alertmanager(TransportSection):
    """Prometheus Alertmanager: silences instead of messages."""

    url: OpenUrl = Field(description="Its URL, without `/api/v2`.")
    matchers: tuple[MatcherText, ...] = Field(
        default=(Matcher("node", NODE),),
        max_length=10,
        description="All have to match: `=`, `!=`, `=~` and `!~`, with `{node}` for the node's name. "
        "Default: `node={node}`.",
    )
    duration: Duration = Field(
        default=timedelta(hours=1), description="How long a silence lasts, at least 10m; it is extended."
    )
    headers: dict[Header, SecretText] = Field(
        default={}, description="Further headers; secrets. Default: none."
    )

    @model_validator(mode="after")
    def _for_one_node(self) -> Alertmanager:
        # A silence without the node would silence the alerts of the whole cluster.
        if not any(NODE in matcher.value and matcher.is_equal for matcher in self.matchers):
            raise Mistakes((Mistake(("matchers",), f"needs one with = or =~ and {NODE}"),))
        if self.duration < SHORTEST_SILENCE:
            raise Mistakes((Mistake(("duration",), "is shorter than 10 minutes"),))
        return self


SHORTEST_SILENCE = timedelta(minutes=10)
"""Passes are a minute apart, and a failed one is repeated after minutes."""


class At(Section):
    """The times at which collected messages are sent."""

    days: Days = Field(
        default=EVERY_DAY, description="The weekdays, such as `[Mon-Fri]`. Default: every day."
    )
    time: Time = Field(description="The time of day.")
    time_zone: Zone | None = Field(default=None, description="Its time zone. Default: that of the file.")


class To(Section):
    """Where the owners of workloads can be reached."""

    namespace_label: Text | None = Field(default=None, description="The label with it. Default: none.")
    namespace_annotation: Text | None = Field(
        default=None, description="The annotation with it, or several by commas. Default: none."
    )
    domains: tuple[Text, ...] = Field(
        default=(), description="For mail: the domains of allowed addresses. Default: none, and no mail."
    )

    @model_validator(mode="after")
    def _one_key(self) -> To:
        if (self.namespace_label is None) == (self.namespace_annotation is None):
            raise Mistakes((Mistake((), "needs either `namespaceLabel` or `namespaceAnnotation`"),))
        return self


_FOR_MESSAGES = frozenset(
    {
        "when",
        "group",
        "every",
        "at",
        "after",
        "held_for",
        "blocked_for",
        "blocked_within",
        "template",
        "cluster",
        "link",
    }
)


class Notify(Section):
    """One receiver of messages."""

    name: Name = Field(description="Its unique name.")
    slack: Slack | None = Field(default=None, description="Send to Slack. Default: none.")
    teams: Teams | None = Field(default=None, description="Send to Microsoft Teams. Default: none.")
    mail: Mail | None = Field(default=None, description="Send mail by SMTP. Default: none.")
    pagerduty: PagerDuty | None = Field(default=None, description="Send to PagerDuty. Default: none.")
    webhook: Webhook | None = Field(
        default=None, description="Post CloudEvents 1.0 to an HTTP server. Default: none."
    )
    apprise: Apprise | None = Field(
        default=None, description="Send by apprise, which needs the extra `[notify]`. Default: none."
    )
    alertmanager: Alertmanager | None = Field(
        default=None,
        description="Silence alerts about a node from its cordon to its uncordon. Default: none.",
    )
    when: tuple[Topic, ...] | None = Field(
        default=None,
        description="The topics to send. Default: those that a person may have to act on, see "
        "docs/notices.md#topics; for `webhook` all.",
    )
    node_selector: Selector = Field(default=EVERYTHING, description="Its nodes. Default: all.")
    kinds: tuple[Kind, ...] = Field(
        default=(),
        description="The kinds of events. The most disruptive event of a case decides. Default: all, "
        "and conditions.",
    )
    group: Duration = Field(default=timedelta(seconds=10), description="How long messages are collected.")
    to: To | None = Field(
        default=None,
        description="Also send to the owners of its pods, by addresses in namespaces; `mail`, and `slack` "
        "with a token. Default: none.",
    )
    every: Duration | None = Field(
        default=None,
        description="How often messages are repeated about nodes that are held, blocked, or will be "
        "missed. Default: never.",
    )
    at: At | None = Field(default=None, description="When collected messages are sent. Default: at once.")
    after: Duration = Field(
        default=timedelta(),
        description="How long a message waits before it is sent. If the case ends meanwhile, nothing "
        "is sent, unless the case failed or was missed.",
    )
    held_for: Duration = Field(
        default=timedelta(hours=1),
        description="How long a node must be held before `Held` is sent. If a third of the time until "
        "the platform may start is shorter, that applies.",
    )
    blocked_for: Duration = Field(default=timedelta(minutes=10), description="The same for `Blocked`.")
    blocked_within: Duration = Field(
        default=timedelta(hours=1),
        description="`Blocked` is sent when the platform may start within this time. Without a date, "
        "`blockedFor` alone decides.",
    )
    template: Text | None = Field(
        default=None,
        max_length=LONGEST,
        description="A message as a Jinja template; not for `pagerduty` and `webhook`. Default: none.",
    )
    cluster: str = Field(
        default="", max_length=100, description="The cluster's name, before each message. Default: `cluster`."
    )

    link: PageUrl = Field(
        default="", description="The URL of the page, which each message links to. Default: none."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Notify:
        chosen = [key for key in TRANSPORTS if getattr(self, key) is not None]
        found = []
        if len(chosen) != 1:
            named = f"{', '.join(chosen)} are" if chosen else "none is"
            found.append(Mistake((), f"needs exactly one of {', '.join(TRANSPORTS)}; {named} set"))
        if self.template is not None and (self.pagerduty is not None or self.webhook is not None):
            found.append(Mistake(("template",), "has no effect, because the message is not a text"))
        elif self.template is not None and (wrong := mistake_in(self.template)):
            found.append(Mistake(("template",), wrong))
        if self.to is not None and self.mail is None and (self.slack is None or self.slack.token is None):
            found.append(Mistake(("to",), "is for `mail`, and for `slack` with a token"))
        if self.to is not None and self.mail is not None and not self.to.domains:
            found.append(Mistake(("to", "domains"), "is missing; mail goes only to these domains"))
        if self.alertmanager is not None:
            given = self.model_fields_set & _FOR_MESSAGES
            found += [Mistake((to_camel(key),), "has no effect on silences") for key in sorted(given)]
        if self.when == ():
            found.append(Mistake(("when",), "has no topics; remove the key for all of them"))
        if self.at is not None and (self.every is not None or self.after):
            found.append(Mistake(("at",), "can't be used together with `every` or `after`"))
        if self.every is not None and self.every < SHORTEST:
            found.append(Mistake(("every",), "is shorter than a minute"))
        if found:
            raise Mistakes(tuple(found))
        return self

    @property
    def topics(self) -> frozenset[Topic]:
        """The topics to send."""
        if self.alertmanager is not None:
            return frozenset()
        for_programs = frozenset(Topic) if self.webhook is not None else USUAL
        chosen = frozenset(for_programs if self.when is None else self.when)
        if self.pagerduty is not None:
            # Alerts end by themselves: each is closed when what it says is over.
            chosen -= {Topic.DONE, Topic.NO_LONGER_MISSED, Topic.SUMMARY}
            return frozenset(one for one in chosen if one.bad) if self.when is None else chosen
        return chosen | {Topic.NO_LONGER_MISSED} if Topic.WILL_BE_MISSED in chosen else chosen

    def first_at(self, message: Message, since: datetime) -> datetime:
        """Return when what is true `since` a moment is sent for the first time (UTC).

        A message waits for the end of what it says no longer than a third of the time that is left. That a
        drain is blocked is no news while there is much time.
        """
        lasting = {Topic.HELD: self.held_for, Topic.BLOCKED: self.blocked_for}
        wait = lasting.get(message.topic, timedelta())
        if message.by is not None:
            third = (message.by - since) // timedelta(seconds=3)
            wait = min(wait, timedelta(seconds=max(third, 0)))
        at = shifted(since, wait)
        if message.topic is Topic.BLOCKED and message.by is not None:
            at = max(at, shifted(message.by, -self.blocked_within))
        return shifted(at, self.after)

    def secrets(self) -> Iterator[tuple[str, Secret]]:
        """Yield the values that are always secrets, by their key in the entry, such as `slack.token`.

        They are those of the types of secrets in the section of the transport, unless they are marked OPEN.
        """
        section: Section = getattr(self, self.transport)
        for name, info in type(section).model_fields.items():
            secret = getattr(section, name)
            if isinstance(secret, Secret) and OPEN not in info.metadata:
                yield f"{self.transport}.{info.alias or name}", secret

    @property
    def transport(self) -> str:
        """The key of the transport, such as `slack`."""
        return next(key for key in TRANSPORTS if getattr(self, key) is not None)


TRANSPORTS = tuple(
    key
    for key, field in Notify.model_fields.items()
    if any(
        isinstance(kind, type) and issubclass(kind, TransportSection) for kind in get_args(field.annotation)
    )
)
"""The keys that say how messages are sent."""

SHORTEST = timedelta(minutes=1)
"""The shortest time between two reminders."""


def entries_of(settings: Settings, cluster: str) -> tuple[Notify, ...]:
    """Return who gets notices, each with a name of the cluster: its own one, else this one."""
    named = {"cluster": cluster}
    return tuple(entry if entry.cluster else entry.model_copy(update=named) for entry in NOTIFY.of(settings))


def sections_of(settings: Settings) -> dict[str, str]:
    """Return a text for each section of the settings, which changes with it, and shows nothing of it."""
    return {
        info.alias or name: f"{mark_of(repr(getattr(settings, name))):08x}"
        for name, info in type(settings).model_fields.items()
    }


class _Notify(FeatureSection[tuple[Notify, ...]], frozen=True, kw_only=True):
    def warnings(self, settings: Settings, now: datetime) -> Iterator[KeyWarning]:
        del now
        for index, entry in enumerate(self.of(settings)):
            for key, secret in entry.secrets():
                if secret.is_written_out:
                    where = f"notify[{index}] ({entry.name}).{key}"
                    message = "is a secret that everyone who may read the settings can see"
                    yield KeyWarning(where, message, "name it, as ${NAME} or ${file:/path}")
            if entry.mail is not None and entry.to is not None and entry.to.namespace_label is not None:
                where = f"notify[{index}] ({entry.name}).to.namespaceLabel"
                message = "finds nobody: a label can't have a mail address"
                yield KeyWarning(where, message, "use namespaceAnnotation")
            if not settings.origin.foreign and settings.mode is Mode.OBSERVE:
                where = f"notify[{index}] ({entry.name})"
                yield KeyWarning(where, "gets nothing in mode Observe", "set another mode")

    def selectors(self, settings: Settings) -> list[LabelSelector]:
        return [entry.node_selector for entry in self.of(settings)]

    def explained(self, settings: Settings) -> list[str]:
        # What a transport needs may be a secret, so it is not shown.
        lines = ["Notices"] if self.of(settings) else []
        for entry in self.of(settings):
            nodes = for_nodes(entry.node_selector)
            if entry.alertmanager is not None:
                matchers = ", ".join(map(str, entry.alertmanager.matchers))
                lines.append(f"  {entry.name} (alertmanager): silences {matchers}{nodes}.")
                continue
            topics = [topic for topic in Topic if topic in entry.topics]
            what = "all topics" if len(topics) == len(Topic) else ", ".join(topics)
            kinds = f", for {', '.join(entry.kinds)}" if entry.kinds else ""
            when = f", at {entry.at.time} on {format_days(entry.at.days)}" if entry.at is not None else ""
            owners = ", also to the owners of workloads" if entry.to is not None else ""
            again = f", again every {format_duration(entry.every)}" if entry.every is not None else ""
            lines.append(f"  {entry.name} ({entry.transport}): {what}{kinds}{nodes}{owners}{when}{again}.")
        return lines


NOTIFY = _Notify(
    key="notify",
    type=Annotated[tuple[Notify, ...], Len(max_length=MOST)],
    default=(),
    description="Who gets notices, how, and when, by one transport each. See docs/notices.md. Default: none.",
    secret=True,
)

SECTIONS = (NOTIFY,)
