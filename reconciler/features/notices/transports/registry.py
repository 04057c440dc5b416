"""Every transport. To add one, add its file here, its section of the settings, and its line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from reconciler.features.notices.transports.http import Http
from reconciler.features.notices.transports.transport import Transport
from reconciler.settings.sections.notify import Notify


def _slack(entry: Notify, http: Http) -> Transport | None:
    from reconciler.features.notices.transports.slack import SlackTransport

    return SlackTransport(entry.slack, http) if entry.slack is not None else None


def _teams(entry: Notify, http: Http) -> Transport | None:
    from reconciler.features.notices.transports.teams import TeamsTransport

    return TeamsTransport(entry.teams, http) if entry.teams is not None else None


def _mail(entry: Notify, http: Http) -> Transport | None:
    del http
    from reconciler.features.notices.transports.mail import MailTransport

    return MailTransport(entry.mail) if entry.mail is not None else None


def _pagerduty(entry: Notify, http: Http) -> Transport | None:
    from reconciler.features.notices.transports.pagerduty import PagerDutyTransport

    return PagerDutyTransport(entry.pagerduty, http) if entry.pagerduty is not None else None


def _webhook(entry: Notify, http: Http) -> Transport | None:
    from reconciler.features.notices.transports.webhook import WebhookTransport

    return WebhookTransport(entry.webhook, http) if entry.webhook is not None else None


def _apprise(entry: Notify, http: Http) -> Transport | None:
    del http
    from reconciler.features.notices.transports.apprise import AppriseTransport

    return AppriseTransport(entry.apprise) if entry.apprise is not None else None


if TYPE_CHECKING:
    from reconciler.features.notices.transports.alertmanager import Silencer

TransportFactory = Callable[[Notify, Http], Transport | None]
"""Creates a transport, or returns None if the entry does not use it."""

TRANSPORTS: Mapping[str, TransportFactory] = {
    "slack": _slack,
    "teams": _teams,
    "mail": _mail,
    "pagerduty": _pagerduty,
    "webhook": _webhook,
    "apprise": _apprise,
}
"""An entry with `alertmanager` sends no messages: see `silencer_of`."""


def transport_of(entry: Notify, http: Http) -> Transport:
    """Return the transport of an entry; ValueError if no transport has its key."""
    made = TRANSPORTS[entry.transport](entry, http)
    if made is None:
        raise ValueError(f"notify {entry.name}: no transport")
    return made


def silencer_of(entry: Notify, http: Http) -> Silencer:
    """Return what keeps the silences of an entry; ValueError if it has none."""
    from reconciler.features.notices.transports.alertmanager import Silencer

    return Silencer(entry, http)
