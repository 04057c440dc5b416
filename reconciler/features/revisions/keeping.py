"""Writes the revision of settings that a pass has used."""

from __future__ import annotations

import logging
from datetime import datetime

from msgspec import Struct

from jobs.runtime.process import Leading
from reconciler.features.revisions.client import RevisionStore
from reconciler.features.revisions.revisions import Kept
from reconciler.features.revisions.settings import REVISIONS
from reconciler.kubernetes.config_maps import read_installed
from reconciler.model.errors import ReconcilerError
from reconciler.settings.schema import Settings

log = logging.getLogger(__name__)


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
    """Write the revision, if it is not the newest one; raises LockLost and ClusterError."""
    content = used.settings.origin.content
    store = RevisionStore(leading.connection, leading.target.namespace, leading.guard)
    by = ""

    def with_revision(before: Kept) -> Kept:
        nonlocal by
        if not before.has_newest(content):
            by = by or _manager(leading, content)
        most = REVISIONS.of(used.settings).keep
        after = before.with_text(content, used.at, by, used.managed, most)
        if after.left_out > before.left_out:
            log.warning(
                "%d of the oldest revisions of the settings are left out: together they are too large",
                after.left_out - before.left_out,
            )
        return after

    store.change(with_revision)


def _manager(leading: Leading, content: bytes) -> str:
    """Return who wrote this text into the installed ConfigMap, empty if that is not known."""
    try:
        held = read_installed(leading.connection, leading.target.namespace)
    except ReconcilerError:
        return ""
    return held.manager if not isinstance(held, str) and held.content == content else ""
