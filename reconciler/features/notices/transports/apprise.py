"""Whatever apprise can send to, by its URL. It needs the extra `[notify]`."""

from __future__ import annotations

import logging

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.settings import Apprise
from reconciler.features.notices.transports.sending import NotSent, resolved
from reconciler.settings.fields import LINK_LOCAL


class AppriseTransport:
    """Sends text by apprise. Its own timeouts are four seconds to connect, and four for each read."""

    def __init__(self, settings: Apprise, tools: object = None) -> None:
        """Send as these settings say."""
        del tools
        self._settings = settings

    def send(self, delivery: Delivery) -> str:
        """Send the text to the URL of apprise."""
        url = resolved(self._settings.url)
        if LINK_LOCAL in url:
            raise NotSent("the URL is a link-local address; nothing is sent there", refused=True)
        try:
            import apprise
        except ImportError:
            raise NotSent("the extra [notify] is not installed", refused=True) from None
        # Its log has parts of URLs in it.
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
        client = apprise.Apprise()
        if not client.add(url):
            raise NotSent("apprise can't read this URL", refused=True)
        kind = apprise.NotifyType.WARNING if delivery.bad else apprise.NotifyType.INFO
        body = delivery.rest
        form = apprise.NotifyFormat.TEXT
        if not client.notify(title=delivery.title, body=body, notify_type=kind, body_format=form):
            raise NotSent("apprise could not send it")
        return ""
