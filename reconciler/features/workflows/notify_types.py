"""The notification instances of workflows, as maintenance-controller names them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from pydantic import Field

from reconciler.calendar import notice_times
from reconciler.calendar.values import literal
from reconciler.model.content import Secret
from reconciler.model.leases import LeaseRef
from reconciler.model.limits import is_object_name
from reconciler.settings.fields import LINK_LOCAL, check_url, is_address
from reconciler.settings.loose import (
    ClockTime,
    GoDuration,
    LongRequiredText,
    LooseDays,
    LooseFlag,
    LooseSection,
    LooseText,
    LooseTexts,
    RequiredText,
)

_SMTP = 25
_DIGITS_OF_A_PORT = 5


class NotifyType(LooseSection, ABC):
    """The configuration of an instance."""

    @property
    @abstractmethod
    def receiver(self) -> Mapping[str, Any]:
        """Where its messages go, as a transport of this type names what it needs."""

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        """The keys with which nothing can be sent, each with what is wrong. No message has a secret."""
        return ()


class Mail(NotifyType):
    """mail: sends an e-mail."""

    address: RequiredText = Field(description="The SMTP server, with its port.")
    from_: RequiredText = Field(alias="from", description="The address of the sender.")
    to: LooseTexts = Field(description="The addresses of the recipients.")
    subject: LooseText = Field(default="", description="The subject.")
    message: LongRequiredText = Field(description="The text, with Go templates such as `{{ .State }}`.")
    auth: LooseFlag = Field(default=False, description="Whether to log in to the server.")
    identity: LooseText = Field(default="", description="The identity for the login.")
    user: LooseText = Field(default="", description="The user for the login.")
    password: LooseText = Field(default="", repr=False, description="The password for the login.")

    @property
    def receiver(self) -> Mapping[str, Any]:
        return {
            "host": self.host,
            "port": self.port,
            "sender": self.from_,
            "to": self.to,
            "subject": self.subject,
            "auth": self.auth,
            "identity": Secret(self.identity),
            "user": Secret(self.user),
            "password": Secret(self.password),
        }

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        addresses = [("from", self.from_), *(("to", each) for each in self.to)]
        wrong = [
            (key, f"{literal(each)} is not a mail address") for key, each in addresses if not is_address(each)
        ]
        local = "is a link-local address, where clouds serve credentials"
        return (*([("address", local)] if self.host.startswith(LINK_LOCAL) else []), *wrong)

    @property
    def host(self) -> str:
        """The name of the server."""
        return self._parts[0]

    @property
    def port(self) -> int:
        """The port of the server, 25 if the address has none."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[str, int]:
        host, _, port = self.address.strip().rpartition(":")
        if host and port.isdecimal() and len(port) <= _DIGITS_OF_A_PORT:
            return host.strip("[]"), int(port)
        return self.address.strip().strip("[]"), _SMTP


class Slack(NotifyType):
    """slack: sends a message to a webhook of Slack."""

    hook: RequiredText = Field(repr=False, description="The URL of the webhook.")
    channel: RequiredText = Field(description="The channel.")
    message: LongRequiredText = Field(description="The text, with Go templates such as `{{ .State }}`.")

    @property
    def receiver(self) -> Mapping[str, Any]:
        return {"url": Secret(self.hook), "channel": self.channel}

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        return _wrong_url("hook", self.hook)


class SlackThread(NotifyType):
    """slackThread: sends messages to Slack, and groups them in threads."""

    token: RequiredText = Field(repr=False, description="The token of Slack's API.")
    channel: RequiredText = Field(description="The channel.")
    title: RequiredText = Field(description="The first message of a thread.")
    message: LongRequiredText = Field(description="The replies in the thread.")
    lease_name: RequiredText = Field(description="The name of the Lease that keeps the thread.")
    lease_namespace: RequiredText = Field(description="The namespace of the Lease.")
    period: GoDuration = Field(description="After which time a new thread starts.")
    url: RequiredText = Field(
        default="https://slack.com",
        description="The server of Slack's API, for a proxy. maintenance-controller ignores this key.",
    )

    @property
    def receiver(self) -> Mapping[str, Any]:
        return {
            "token": Secret(self.token),
            "channel": self.channel,
            "lease": LeaseRef(self.lease_namespace, self.lease_name),
            "period": self.period,
            "url": self.url,
        }

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        names = (("leaseName", self.lease_name), ("leaseNamespace", self.lease_namespace))
        wrong = [
            (key, f"{literal(each)} is no name in Kubernetes")
            for key, each in names
            if not is_object_name(each)
        ]
        return (*_wrong_url("url", self.url), *wrong)


def _wrong_url(key: str, url: str) -> tuple[tuple[str, str], ...]:
    try:
        check_url(url)
    except ValueError as error:
        return ((key, str(error)),)
    return ()


NOTIFY_TYPES: Mapping[str, type[LooseSection]] = MappingProxyType(
    {"mail": Mail, "slack": Slack, "slackThread": SlackThread}
)
"""The section of each type's configuration, by the name of the type."""


class ScheduleType(LooseSection, ABC):
    """The configuration of a schedule."""

    only_limits = True

    @property
    @abstractmethod
    def times(self) -> notice_times.Schedule:
        """When messages are sent."""


class Periodic(ScheduleType):
    """periodic: after a change of the state, and again after each interval unless the node is operational."""

    interval: GoDuration = Field(default=timedelta(hours=1), description="The time between two messages.")

    @property
    def times(self) -> notice_times.Schedule:
        return notice_times.Periodic(self.interval)


class Scheduled(ScheduleType):
    """scheduled: at a time of day on some weekdays."""

    instant: ClockTime = Field(description="The time of day, `hh:mm`, UTC.")
    weekdays: LooseDays = Field(description="The weekdays.")

    @property
    def times(self) -> notice_times.Schedule:
        return notice_times.Weekly(self.instant, self.weekdays)


class Oneshot(ScheduleType):
    """oneshot: once after a change of the state."""

    delay: GoDuration = Field(default=timedelta(minutes=1), description="How long after the change.")

    @property
    def times(self) -> notice_times.Schedule:
        return notice_times.Once(self.delay)


SCHEDULE_TYPES: Mapping[str, type[LooseSection]] = MappingProxyType(
    {"periodic": Periodic, "scheduled": Scheduled, "oneshot": Oneshot}
)
"""The section of each schedule's configuration, by the name of its type."""
