"""The log of a long-running job: JSON lines on stdout, one for each node about which something changed."""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from jobs.runtime.log_line import LARGEST_TRACEBACK, Level, LogEvent, begin_log, log_line, write_events
from reconciler.model.content import SettingsVersion
from reconciler.model.ended_case import EndedCase, to_fields
from reconciler.model.errors import ReconcilerError
from reconciler.model.moments import to_text
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.reconciler import Reconciler
from reconciler.report.columns import log_fields
from reconciler.report.people import clocks_disagree
from reconciler.report.values import settings_value
from reconciler.settings.schema import Settings


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {"logger": record.name}
        # Where a caller passes `exc_info=False`, the record has that False, whatever its type says.
        if record.exc_info and record.exc_info[1] is not None:
            fields["traceback"] = _traceback(record.exc_info[1])
        return log_line(record.getMessage(), record.levelname.lower(), **fields)


def log_as_json(least: Level = Level.INFO) -> None:
    """Write the log to stdout as JSON lines from this level on, with the warnings and errors of libraries."""
    begin_log(least)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_JsonLines())
    level = logging.ERROR if least is Level.ERROR else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler], force=True)


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-20))[-LARGEST_TRACEBACK:]


class PassLog:
    """Logs passes, and only what has changed since it was last logged."""

    def __init__(self) -> None:
        """Start with nothing logged."""
        self._told: dict[str, _Told] = {}
        self._notable: dict[tuple[str, str], str] = {}
        self._holder = ""
        self._others: tuple[str, ...] = ()
        self._lost: tuple[str, ...] = ()
        self._clocks_disagree = False
        self._trouble = ""

    @staticmethod
    def write(event: str, *, level: str = Level.INFO, **fields: Any) -> None:
        """Write one line."""
        write_events(event, fields, level=level)

    def standby(self, holder: str) -> None:
        """Log once which process leads."""
        if holder != self._holder:
            self._holder = holder
            self.write(LogEvent.STANDING_BY, holder=holder)

    def reconciler(self, reconciler: Reconciler) -> None:
        """Log once which other reconcilers act on the same nodes, and what new settings do not guard."""
        if reconciler.others != self._others:
            self._others = reconciler.others
            if self._others:
                because = f"its lock is in namespace {', '.join(self._others)}"
                self.write(LogEvent.TWO_RECONCILERS, level=Level.WARNING, because=because)
        if reconciler.lost != self._lost:
            self._lost = reconciler.lost
            if self._lost:
                self.write(LogEvent.LESS_GUARDED, level=Level.WARNING, because="; ".join(self._lost))

    def clocks(self, plan: Plan) -> None:
        """Log once that the clocks of the API servers disagree so that starts follow from it, and the end."""
        because = clocks_disagree(plan)
        if bool(because) != self._clocks_disagree:
            self._clocks_disagree = bool(because)
            if because:
                self.write(LogEvent.CLOCKS_DISAGREE, level=Level.WARNING, because=because)
            else:
                self.write(LogEvent.CLOCKS_AGREE)

    def trouble(self, error: Exception) -> None:
        """Log that a pass failed, once while the error stays the same."""
        self._failed(LogEvent.PASS_FAILED, error)

    def unexpected(self, error: Exception, failures: int, again: float) -> None:
        """Log that a pass ended with an error that it does not expect: every time.

        One that the program does not raise on purpose has its traceback.

        `failures` counts those in a row, `again` is the pause in seconds before the next pass.
        """
        self._trouble = ""
        trace = {} if isinstance(error, ReconcilerError) else {"traceback": _traceback(error)}
        self.write(
            LogEvent.PASS_FAILED,
            level=Level.ERROR,
            because=f"{type(error).__name__}: {error}",
            failures=failures,
            againInSeconds=round(again, 1),
            **trace,
        )

    @staticmethod
    def probe_failed(error: Exception) -> None:
        """Log that a probe was not answered as it should, with the traceback."""
        because = f"{type(error).__name__}: {error}"
        PassLog.write(LogEvent.PROBE_FAILED, level=Level.ERROR, because=because, traceback=_traceback(error))

    @staticmethod
    def cases(ended: Iterable[EndedCase]) -> None:
        """Log cases that have ended."""
        write_events(LogEvent.CASE, *map(to_fields, ended))

    @staticmethod
    def settings_loaded(settings: Settings, cluster: str) -> None:
        """Log which settings apply from now on; a file that never does anything is a warning."""
        mode, version, nothing = settings.mode.value, _version(settings.version), settings.idle
        level, because = (Level.WARNING, {"because": nothing}) if nothing else (Level.INFO, {})
        PassLog.write(
            LogEvent.SETTINGS_LOADED, level=level, mode=mode, settings=version, cluster=cluster, **because
        )

    @staticmethod
    def settings_rejected(because: str, in_force: Settings, cluster: str) -> None:
        """Log that settings are invalid, and which ones still apply."""
        PassLog.write(
            LogEvent.NO_SETTINGS if in_force.rejected else LogEvent.SETTINGS_REJECTED,
            level=Level.ERROR,
            because=because,
            settings=_version(in_force.version),
            cluster=cluster,
        )

    def _failed(self, event: LogEvent, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        if text != self._trouble:
            self._trouble = text
            self.write(event, level=Level.ERROR, because=text)

    def write_pass(self, plan: Plan, outcomes: tuple[Outcome, ...], *, rehearsed: bool) -> None:
        """Write a line for each node with news, and for each new result that people have to hear of.

        A pass that only repeats the one before writes nothing: not the drain that goes on, not the hold that
        counts seconds, not the action that fails again for the same reason.
        """
        self._trouble = self._holder = ""
        told: dict[str, _Told] = {}
        for node in plan.nodes:
            before = self._told.get(node.node)
            if before is not None and before.plan is node:
                # The node rests.
                told[node.node] = before
                continue
            fields = log_fields(node)
            told[node.node] = now = _told(node, fields, plan.now)
            if not now.repeats(before):
                start: dict[str, Any] = {}
                # A person who has just written a freeze must be able to see whether this start knew of it.
                if node.starts:
                    start["settings"] = settings_value(plan.settings.version, plan.now)
                if rehearsed:
                    # Nothing was done. What the pass would do has keys of its own.
                    would = {"wouldBe": fields["state"], "wouldDo": fields["actions"]}
                    fields = {**fields, "state": node.before.value, "actions": [], **would}
                self.write(LogEvent.NODE, dryRun=rehearsed, node=node.node, **fields, **start)
        for name in self._told.keys() - told.keys():
            self.write(LogEvent.NODE, dryRun=rehearsed, node=name, state="operational", actions=[], holds=[])
        self._told = told
        notable = {(outcome.node, outcome.action): outcome for outcome in outcomes if outcome.notable}
        for key, one in notable.items():
            if _steady(one.detail) != self._notable.get(key):
                event, level = _RESULTS[one.result]
                self.write(event, level=level, node=one.node, action=one.action, because=one.detail)
        self._notable = {key: _steady(one.detail) for key, one in notable.items()}


_RESULTS = {Result.FAILED: (LogEvent.FAILED, Level.ERROR), Result.LATER: (LogEvent.LATER, Level.INFO)}

# What a plan does again in each pass, or only for its own bookkeeping, is no news.
_QUIET = frozenset({"record", "publish", "conditions"})


class _Told(Struct, frozen=True):
    """What the last line about a node said: its situation, the actions, and the reasons of transitions.

    `plan` is the last one that the line is right for.
    """

    plan: NodePlan
    situation: str
    actions: frozenset[str]
    because: tuple[str, ...]

    def repeats(self, before: _Told | None) -> bool:
        """Whether a line would say nothing that the pass before did not say."""
        if before is None or self.situation != before.situation:
            return False
        if self.actions - before.actions - _QUIET:
            return False
        return not self.because or self.because == before.because


def _told(plan: NodePlan, fields: dict[str, Any], now: datetime) -> _Told:
    situation = {key: value for key, value in fields.items() if key not in ("actions", "because")}
    if situation["plannedStart"] == to_text(now):
        # A drain that may start at any time is planned for the moment of each pass.
        situation["plannedStart"] = "now"
    text = _steady(json.dumps(situation, sort_keys=True))
    return _Told(plan, text, frozenset(fields["actions"]), tuple(map(_steady, fields["because"])))


def _steady(text: str) -> str:
    """Return the text without durations, such as an age or a skew: they count by themselves."""
    return _DURATION.sub("#", text)


_CLOCK = r"(?:\d+ days?, )?\d+:\d\d:\d\d(?:\.\d+)?"
_SECONDS = r"\d+(?:\.\d+)? (?:seconds?|s)"
_SHORT = r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+"
_DURATION = re.compile(rf"(?<![\w:.-])(?:{_CLOCK}|{_SECONDS}|{_SHORT})(?![\w:-])")


def _version(version: SettingsVersion | None) -> dict[str, Any] | None:
    return settings_value(version, datetime.now(UTC))
