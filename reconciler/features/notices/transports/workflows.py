"""What sends the messages of each instance type of workflows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from reconciler.features.notices.transports.http import Http
from reconciler.features.notices.transports.transport import Sender
from reconciler.features.notices.transports.workflow_slack import Threads, WorkflowSlack, WorkflowThread
from reconciler.settings.sections.notify_types import Mail, Slack, SlackThread
from reconciler.settings.sections.workflows import NotifyInstance


class Senders(Struct, frozen=True):
    """Makes the senders; `now` is the clock (aware)."""

    http: Http
    threads: Threads
    now: Callable[[], datetime]

    def of(self, instance: NotifyInstance) -> Sender:
        """Return what sends the messages of an instance; ValueError if nothing sends those of its type."""
        match instance.settings:
            case Mail() as mail:
                # Most workflows send no mail.
                from reconciler.features.notices.transports.workflow_mail import WorkflowMail

                return WorkflowMail(mail)
            case Slack() as slack:
                return WorkflowSlack(slack, self.http)
            case SlackThread() as thread:
                return WorkflowThread(thread, self.http, self.threads, self.now)
        raise ValueError(f"instances.notify {instance.name}: no sender has the type {instance.type}")
