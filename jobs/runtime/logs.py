"""The log of a long-running job: JSON lines on stdout, one for each node about which something changed."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from jobs.runtime.log_line import LARGEST_TRACEBACK, to_line, write_utf8
from reconciler.model.moments import to_micro_text
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.settings_version import SettingsVersion
from reconciler.report.columns import FOR_PEOPLE
from reconciler.report.values import settings_value
from reconciler.settings.schema import Settings


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {"logger": record.name}
        # Where a caller passes `exc_info=False`, the record has that False, whatever its type says.
        if record.exc_info and record.exc_info[1] is not None:
            fields["traceback"] = _traceback(record.exc_info[1])
        return _line(record.levelname.lower(), record.getMessage(), fields)


def log_as_json() -> None:
    """Write the warnings and errors of libraries to stdout as JSON lines."""
    write_utf8()
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _line(level: str, event: str, fields: dict[str, Any]) -> str:
    now = to_micro_text(datetime.now(UTC))
    return to_line({"at": now, "level": level, "event": event, **fields})


def _traceback(error: BaseException) -> str:
    """Return the end of the traceback, which names the error."""
    return "".join(traceback.format_exception(error, limit=-20))[-LARGEST_TRACEBACK:]


class PassLog:
    """Logs passes, and only what has changed since it was last logged."""

    def __init__(self) -> None:
        """Start with nothing logged."""
        self._last_lines: dict[str, str] = {}
        self._holder = ""
        self._trouble = ""

    @staticmethod
    def write(event: str, *, level: str = "info", **fields: Any) -> None:
        """Write one line."""
        print(_line(level, event, fields), flush=True)

    def standby(self, holder: str) -> None:
        """Log once which process leads."""
        if holder != self._holder:
            self._holder = holder
            self.write("standing by", holder=holder)

    def trouble(self, error: Exception) -> None:
        """Log that a pass failed, once while the error stays the same."""
        self._failed("pass failed", error)

    def unexpected(self, error: Exception, failures: int, again: float) -> None:
        """Log that a pass ended with an error of the program: every time, with the traceback.

        `failures` counts those in a row, `again` is the pause in seconds before the next pass.
        """
        self._trouble = ""
        self.write(
            "pass failed",
            level="error",
            because=f"{type(error).__name__}: {error}",
            failures=failures,
            againInSeconds=round(again, 1),
            traceback=_traceback(error),
        )

    @staticmethod
    def probe_failed(error: Exception) -> None:
        """Log that a probe was not answered as it should, with the traceback."""
        because = f"{type(error).__name__}: {error}"
        PassLog.write("probe failed", level="error", because=because, traceback=_traceback(error))

    @staticmethod
    def settings_loaded(settings: Settings) -> None:
        """Log which settings apply from now on."""
        PassLog.write("settings loaded", mode=settings.mode.value, settings=_version(settings.version))

    @staticmethod
    def settings_rejected(because: str, in_force: Settings) -> None:
        """Log that changed settings are invalid, and which ones still apply."""
        PassLog.write(
            "settings rejected; previous ones still apply",
            level="error",
            because=because,
            settings=_version(in_force.version),
        )

    def _failed(self, event: str, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        if text != self._trouble:
            self._trouble = text
            self.write(event, level="error", because=text)

    def write_pass(self, plan: Plan, outcomes: tuple[Outcome, ...], *, rehearsed: bool) -> None:
        """Write a line for each node whose columns changed, and for each action that failed."""
        self._trouble = self._holder = ""
        lines: dict[str, str] = {}
        for node in plan.nodes:
            fields = _columns(node)
            lines[node.node] = json.dumps(fields, sort_keys=True)
            if self._last_lines.get(node.node) != lines[node.node]:
                start: dict[str, Any] = {}
                # A person who has just written a freeze must be able to see whether this start knew of it.
                if node.starts:
                    start["settings"] = settings_value(plan.settings, plan.now)
                self.write("node", dryRun=rehearsed, node=node.node, **fields, **start)
        for name in self._last_lines.keys() - lines.keys():
            self.write("node", dryRun=rehearsed, node=name, state="operational", actions=[], holds=[])
        self._last_lines = lines
        for one in outcomes:
            if one.notable:
                level = "error" if one.result is Result.FAILED else "info"
                self.write(
                    one.result.value, level=level, node=one.node, action=one.action, because=one.detail
                )


def _version(version: SettingsVersion | None) -> dict[str, Any] | None:
    return settings_value(version, datetime.now(UTC))


def _columns(node: NodePlan) -> dict[str, Any]:
    """Return the columns that a log shows: a line is written when one of them changes."""
    fields = [column.log for column in FOR_PEOPLE if column.log is not None]
    return {field.key: field.value(node) for field in fields}
