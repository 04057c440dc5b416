"""The vocabulary of all logs: the events and the fields that the reconciler and the node agent write.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from jobs.runtime.log_line import to_line
from reconciler.model.moments import to_micro_text


class LogEvent(StrEnum):
    """What a line is about, as its field `event`; docs/operating.md and docs/agent.md describe each one."""

    # Both
    LISTENING = "listening"
    PROBE_FAILED = "probe failed"

    # The reconciler
    NODE = "node"
    FAILED = "failed"
    LATER = "later"
    CASE = "case"
    HISTORY_FAILED = "cannot write the history"
    LEADING = "leading"
    STANDING_BY = "standing by"
    PASS_FAILED = "pass failed"
    SETTINGS_LOADED = "settings loaded"
    SETTINGS_REJECTED = "settings rejected; previous ones still apply"
    ENDING = "ending"
    ENDED = "ended"

    # The node agent
    WATCHING = "watching"
    PUBLISHED = "published"
    ACKNOWLEDGED = "acknowledged"
    IMDS_FAILED = "IMDS gives no good answer"
    IMDS_WORKS = "IMDS answers again"
    CANNOT_ACKNOWLEDGE = "cannot acknowledge"
    CANNOT_LISTEN = "cannot listen"
    CANNOT_READ_NODE = "cannot read the Node"
    CANNOT_PUBLISH = "cannot publish"
    CANNOT_TELL_VM = "cannot tell which VM this is"
    STEP_FAILED = "step failed"


class LogField(StrEnum):
    """The fields of the lines, besides those of the report. Moments are RFC 3339 in UTC."""

    AT = "at"
    LEVEL = "level"
    EVENT = "event"
    NODE = "node"
    BECAUSE = "because"
    FAILURES = "failures"
    TRACEBACK = "traceback"
    ADDRESS = "address"
    LOGGER = "logger"
    # The reconciler
    ACTION = "action"
    DEADLINE = "deadline"
    DRY_RUN = "dryRun"
    HOLDER = "holder"
    MODE = "mode"
    SETTINGS = "settings"
    AGAIN_IN_SECONDS = "againInSeconds"
    # The node agent
    VM = "vm"
    INTERVAL_SECONDS = "intervalSeconds"
    EVENTS = "events"
    ID = "id"


class Level(StrEnum):
    """How bad it is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def log_line(event: str, level: str = Level.INFO, **fields: object) -> str:
    """Return one line of a log, without its end: `at` (now, UTC), `level`, `event`, then the fields."""
    now = to_micro_text(datetime.now(UTC))
    return to_line({"at": now, "level": str(level), "event": str(event), **fields})
