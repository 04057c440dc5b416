"""Writes the revision of settings that a pass has used, and says what has changed."""

from __future__ import annotations

import logging
from datetime import datetime

from msgspec import Struct

from jobs.runtime.log_line import write_events
from jobs.runtime.process import EventWriter, Leading, first
from reconciler.features.revisions import KEPT_IN
from reconciler.features.revisions.changes import changed_keys, in_words
from reconciler.features.revisions.client import RevisionStore
from reconciler.features.revisions.revisions import Kept
from reconciler.features.revisions.settings import REVISIONS
from reconciler.kubernetes.config_maps import read_installed
from reconciler.model import limits
from reconciler.model.errors import ClusterError, ReconcilerError
from reconciler.model.plan import Notice
from reconciler.model.sayings import Deed
from reconciler.settings.schema import Settings

log = logging.getLogger(__name__)

CHANGED = "SettingsChanged"
"""The reason of the Event, also in alerts of people."""

LOGGED = "settings changed"
"""The `event` of the line in the log."""


class Used(Struct, frozen=True):
    """Settings that a pass has used `at` a moment (UTC), with how many nodes it managed.

    `before` is how many the last pass with other settings managed, None if that is not known.
    """

    settings: Settings
    at: datetime
    managed: int
    before: int | None = None

    @property
    def hash(self) -> str:
        """The hash of their text."""
        return self.settings.version.hash if self.settings.version is not None else ""


def keep(leading: Leading, used: Used) -> None:
    """Write the revision, if it is not the newest one, and say what has changed since that.

    First comes the Event, which can be written only once: a process that is killed before the revision is
    written leaves both to the next one. Raises LockLost and ClusterError.
    """
    content, settings = used.settings.origin.content, used.settings
    store = RevisionStore(leading.connection, leading.target.namespace, leading.guard)
    try:
        before = store.load()
    except ValueError:
        # Below, they are replaced.
        before = Kept()
    if before.has_newest(content):
        return
    by = _manager(leading, content)
    changed = _changed(used, before, by)
    if changed is not None:
        _write_event(leading, settings, changed)

    def with_revision(before: Kept) -> Kept:
        after = before.with_text(content, used.at, by, used.managed, REVISIONS.of(settings).keep)
        if after.left_out > before.left_out:
            log.warning(
                "%d of the oldest revisions of the settings are left out: together they are too large",
                after.left_out - before.left_out,
            )
        return after

    store.change(with_revision)
    if changed is not None:
        fields = {"settings": used.hash, "because": changed.message}
        write_events(LOGGED, fields)
        why = limits.text(changed.message)
        leading.did(Deed(used.at.replace(microsecond=0), "settings changed", by=by, why=why))


def _changed(used: Used, before: Kept, by: str) -> Notice | None:
    """Return what to say of other settings than those of the newest revision, None without one."""
    newest = before.newest
    if newest is None:
        return None
    number = newest.number + 1
    try:
        what = in_words(changed_keys(newest.content(), used.settings.origin.content))
    except ValueError as error:
        what = f"what changed is not known: {error}"
    managed = newest.managed if used.before is None else used.before
    nodes = f"{managed} → {limits.count_of(used.managed, 'node')} managed"
    author = f" by {by}" if by else ""
    message = f"settings changed to {used.hash} (revision {number}){author}: {what}; {nodes}"
    return Notice(CHANGED, message, once=f"{number} {used.hash}")


def _write_event(leading: Leading, settings: Settings, changed: Notice) -> None:
    """Write the Event on the ConfigMap of the revisions; raises LockLost, and ClusterError to try again."""
    make = first("by_hand")
    if make is None:
        return
    leading.guard()
    try:
        events: EventWriter = make(leading.connection, settings.time_zone)
        events.send_about_config_map(leading.target.namespace, KEPT_IN, changed)
    except ClusterError as error:
        if error.temporary:
            raise
        log.warning("an event was not written: reason=%s error=%s", changed.reason, error)


def _manager(leading: Leading, content: bytes) -> str:
    """Return who wrote this text into the installed ConfigMap, empty if that is not known."""
    try:
        held = read_installed(leading.connection, leading.target.namespace)
    except ReconcilerError:
        return ""
    return held.manager if not isinstance(held, str) and held.content == content else ""
