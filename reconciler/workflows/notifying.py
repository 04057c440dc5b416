"""Which notifications of a node's profiles are due, and their messages.

Each state of a profile names notifications. The time at which one was last sent is in the data of the node,
by the name of the instance, so profiles that name the same instance share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from reconciler.calendar.notice_times import Past, Periodic, Schedule, due
from reconciler.model import limits
from reconciler.model.moments import shifted, to_text
from reconciler.model.problems import guarded
from reconciler.model.record import State
from reconciler.model.workflow import ProfileData, WorkflowData
from reconciler.model.workflow_message import WorkflowMessage
from reconciler.settings.go_templates import Escape, Fields, TemplateRefused, indexed, rendered
from reconciler.settings.message_fields import About, message_fields
from reconciler.workflows.input import CheckInput

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Notification:
    """An instance of a notification: its templates, and when it is sent.

    `escape` is called with each value that a template inserts.
    """

    name: str
    schedule: Schedule
    text: str
    title: str = ""
    escape: Escape = str

    def reads(self, what: str) -> frozenset[str]:
        """Return the keys of the node's `Labels` or `Annotations` that the templates insert."""
        return frozenset[str]().union(
            *(
                indexed(text, "Node", *way, what)
                for text in (self.text, self.title)
                for way in ((), ("ObjectMeta",))
            )
        )

    def made(self, fields: Fields, facts: str) -> tuple[str, str]:
        """Return the title and the text. A template that fails makes the facts, with the reason."""
        try:
            title = limits.text(rendered(self.title, fields, self.escape), limits.TEXT)
            # No receiver takes a message without a text.
            return title, rendered(self.text, fields, self.escape).strip() or self.escape(facts)
        except TemplateRefused as error:
            facts = self.escape(f"{facts}\nThe template of {self.name} can't be rendered: {error}")
            return self.escape(f"Notification {self.name}") if self.title else "", facts


def notified(
    named: Iterable[tuple[str, tuple[Notification, ...]]], given: CheckInput
) -> tuple[WorkflowData, tuple[WorkflowMessage, ...]]:
    """Return the data with what is sent now, and the messages.

    `named` are the profiles of the node, each with the notifications of its state. `given` has the node and
    its data as this pass found them: a message is about the state before this pass.
    """
    messages: list[WorkflowMessage] = []
    sent = dict(given.data.notifications)
    for profile, notifications in named:
        kept = given.data.profiles[profile]
        for one in notifications:
            if not _is_due(
                one.schedule, given, kept, given.data.notifications.get(one.name), sent.get(one.name)
            ):
                continue
            message, _ = guarded(
                f"node {given.node.name}: the notification {one.name} has no text",
                partial(_message, one, profile, given),
                None,
            )
            messages += [message] if message is not None else []
            sent[one.name] = given.now.replace(microsecond=0)
    if not messages:
        return given.data, ()
    # Names of instances that the settings do not have any more would add up.
    newest = sorted(sent.items(), key=lambda item: item[1], reverse=True)[: limits.ENTRIES]
    return replace(given.data, notifications=dict(newest)), tuple(messages)


def after_sent(data: WorkflowData, moment: datetime) -> datetime:
    """Return when a change at this moment (UTC, whole seconds) happens: after every notification before it.

    Otherwise one that was sent in the same second would count as sent about the new state.
    """
    return shifted(moment, _SECOND) if moment in data.notifications.values() else moment


def _is_due(
    schedule: Schedule, given: CheckInput, kept: ProfileData, before: datetime | None, last: datetime | None
) -> bool:
    """Return whether a notification is due.

    `before` is when it was last sent before this pass. In this pass another profile may have sent it: `last`
    has that, too. A change is said for each profile, and what only repeats is said once.
    """
    # A profile that is new on its node is operational, and has not changed.
    unchanged = kept.current is State.OPERATIONAL and kept.previous is State.OPERATIONAL
    changed = None if unchanged and isinstance(schedule, Periodic) else kept.transition
    past = Past(before, changed, at_rest=kept.current is State.OPERATIONAL)
    past = past if past.has_news else replace(past, last=last)
    return due(schedule, given.now, past)


def _message(one: Notification, profile: str, given: CheckInput) -> WorkflowMessage:
    kept = given.data.profiles[profile]
    profiles = given.data.profiles
    about = About(
        profile,
        kept.current.value,
        kept.transition,
        last=max(profiles, key=lambda name: (profiles[name].transition, name == profile)),
        in_maintenance=any(each.current is State.IN_MAINTENANCE for each in profiles.values()),
        log_details=given.node.labels.get(given.keys.log_details) == "true",
    )
    since = to_text(kept.transition)
    facts = f"Node {given.node.name} is in the state {kept.current} of profile {profile} since {since}."
    title, text = one.made(message_fields(given.node, about), facts)
    last = given.data.notifications.get(one.name)
    # While the node can't be written, each pass finds the same message.
    identity = (given.node.uid, one.name, profile, kept.current.value, since, to_text(last) if last else "")
    hashed = hashlib.sha256("\0".join(identity).encode("utf-8", "replace")).hexdigest()[:24]
    return WorkflowMessage(hashed, one.name, given.node.name, given.now.replace(microsecond=0), text, title)
