"""Every transport. To add one, add its file here, its section of the settings, and its line."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from reconciler.features.notices.settings import Notify
from reconciler.features.notices.transports.http import Http
from reconciler.features.notices.transports.transport import Transport

if TYPE_CHECKING:
    from reconciler.features.notices.transports.alertmanager import Silencer

TRANSPORTS: Mapping[str, str] = {
    "slack": "slack:SlackTransport",
    "teams": "teams:TeamsTransport",
    "mail": "mail:MailTransport",
    "pagerduty": "pagerduty:PagerDutyTransport",
    "webhook": "webhook:WebhookTransport",
    "apprise": "apprise:AppriseTransport",
}
"""An entry with `alertmanager` sends no messages: see `silencer_of`."""

_WITHOUT_HTTP = frozenset({"mail", "apprise"})


def transport_of(entry: Notify, http: Http) -> Transport:
    """Return the transport of an entry."""
    key = entry.transport
    made = resolve_name(f"reconciler.features.notices.transports.{TRANSPORTS[key]}")
    settings = getattr(entry, key)
    transport: Transport = made(settings) if key in _WITHOUT_HTTP else made(settings, http)
    return transport


def silencer_of(entry: Notify, http: Http) -> Silencer:
    """Return what keeps the silences of an entry; ValueError if it has none."""
    from reconciler.features.notices.transports.alertmanager import Silencer

    return Silencer(entry, http)
