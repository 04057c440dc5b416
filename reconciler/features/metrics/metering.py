"""What a process shows as metrics: the counters of its life, and the values of its last pass."""

from __future__ import annotations

import logging
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Self

from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector

from jobs.runtime.health import Document
from jobs.runtime.metrics import Sample
from jobs.runtime.process import Observer, Passed
from jobs.runtime.unblocked import dropped
from reconciler import __version__
from reconciler.drain.drainer.requests import REASONS
from reconciler.features.metrics import catalogue
from reconciler.features.metrics.exposition import CONTENT_TYPE, Counters, MetricsSnapshot, Samples, to_text
from reconciler.features.metrics.samples import (
    HoldsSince,
    PassView,
    ProcessView,
    count_answers,
    held_since,
    missed_samples,
    open_kinds,
    pass_samples,
    process_samples,
)
from reconciler.http.failures import report_requests
from reconciler.model.case_outcome import ENDS
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.ended_case import EndedCase
from reconciler.model.plan import Plan
from reconciler.model.values import replace

SUCCEEDED, STANDBY, FAILED = "succeeded", "standby", "failed"
"""The results of a pass."""

SENT, NOT_SENT = "sent", "failed"
"""The results of an attempt to send notices."""

MISSED_FOR = timedelta(hours=1)
"""How long a case that was missed is shown after its end: its node may be gone."""

MISSED_SHOWN = 100
"""Such cases that are shown at most, those that ended last."""

_DRAINS = {phase: phase.value.replace(" ", "_") for phase in Phase if phase is not Phase.RUNNING}

_OURS = ("reconciler", "jobs")
"""The parents of our own loggers."""


class _DrainEnd(Struct, frozen=True):
    """What distinguishes the end of a drain from the others of its node."""

    uid: str
    finished: datetime | None


class Meter(Observer):
    """Counts what happens in this process; safe for threads."""

    last_read = "/metrics"

    def __init__(
        self, others: Observer | None = None, holds: HoldsSince | None = MappingProxyType({})
    ) -> None:
        """Count from zero, and show what the others have to show as well.

        `holds` is since when nodes are held, as an earlier process knows it. None: it is not known, and not
        shown.
        """
        self._others = others or Observer()
        self._registry = CollectorRegistry()
        self._counters = Counters(self._registry)
        self._registry.register(Samples(self._samples))
        ProcessCollector(registry=self._registry)
        self._process = ProcessView(__version__, platform.python_version())
        self._lock = threading.Lock()
        self._pass: PassView | None = None
        self._holds = holds
        self._dropped = 0
        self._began: dict[str, datetime] = {}
        self._missed: tuple[EndedCase, ...] = ()
        self._ended: dict[str, _DrainEnd] = {}
        self._open = ExitStack()
        for result in (SUCCEEDED, STANDBY, FAILED):
            self._counters.add(catalogue.PASSES, result, by=0)
        for reason in REASONS:
            self._counters.add(catalogue.EVICTIONS_REFUSED, reason, by=0)
        for ending in _DRAINS.values():
            self._counters.add(catalogue.DRAINS, ending, by=0)

    def __enter__(self) -> Self:
        """Count the requests and the unexpected errors of the process from now on."""
        self._open.callback(report_requests(self.request))
        handler = _Errors(self.unexpected)
        for name in _OURS:
            logging.getLogger(name).addHandler(handler)
            self._open.callback(logging.getLogger(name).removeHandler, handler)
        return self

    def __exit__(self, *_: object) -> None:
        """Count them no more."""
        self._open.close()

    @property
    def documents(self) -> Mapping[str, Callable[[], Document]]:
        """Send all metrics."""
        return {self.last_read: lambda: Document(CONTENT_TYPE, self.text())}

    def text(self) -> bytes:
        """Return all metrics as the text that Prometheus reads."""
        return to_text(self._up_to_date())

    def take(self) -> MetricsSnapshot:
        """Return all metrics as they are now."""
        return MetricsSnapshot(self._up_to_date())

    def _up_to_date(self) -> CollectorRegistry:
        with self._lock:
            lines = dropped()
            self._counters.add(catalogue.LOG_LINES_DROPPED, by=lines - self._dropped)
            self._dropped = lines
        return self._registry

    @property
    def has_plan(self) -> bool:
        """Whether there is a plan to show."""
        return self._pass is not None

    def settings(self, *, good: bool) -> None:
        """Note whether the settings file can be used."""
        self._note(settings_good=good)

    def leads(self, *, leads: bool) -> None:
        """Note whether this process holds the lock."""
        self._note(leads=leads)

    def succeeded(self, seconds: float, now: datetime) -> None:
        """Count a pass that ended `now` (aware) without an error."""
        self._counters.add(catalogue.PASSES, SUCCEEDED)
        self._counters.observe(catalogue.PASS_DURATION, seconds)
        self._note(last_success=now)

    def failed(self, seconds: float) -> None:
        """Count a pass that ended with an error. What the one before has shown stays."""
        self._counters.add(catalogue.PASSES, FAILED)
        self._counters.observe(catalogue.PASS_DURATION, seconds)

    def stands_by(self, holder: str) -> None:
        """Count a pass while another process has the lock: only that one shows nodes."""
        self._counters.add(catalogue.PASSES, STANDBY)
        self._pass = None
        self._holds = None if self._holds is None else {}

    def after(self, passed: Passed) -> None:
        """Show this pass."""
        self.shows(passed.plan, passed.drains)

    def shows(self, plan: Plan, drains: Mapping[str, DrainProgress]) -> None:
        """Show this plan, and count its answers and the drains that have ended. `drains` are by node."""
        if self._holds is not None:
            self._holds = held_since(self._holds, plan)
        self._pass = PassView(plan, drains, self._holds or {})
        self._missed = tuple(case for case in self._missed if plan.now - case.times.ended < MISSED_FOR)
        for labels, count in count_answers(plan):
            self._counters.add(catalogue.SOURCE_ANSWERS, *labels, by=count)
        for kind in open_kinds(plan):
            # A rate sees the first case that ends only if the series was there before it.
            for outcome in ENDS:
                self._counters.add(catalogue.CASES, kind, outcome.value, by=0)
        self._began |= {
            node.node: node.todo.drain.since for node in plan.nodes if node.todo.drain is not None
        }
        self.drains(drains)

    def drains(self, drains: Mapping[str, DrainProgress]) -> None:
        """Show these drains, and count those that have ended since the last call."""
        if self._pass is not None:
            self._pass = replace(self._pass, drains=drains)
        for node, one in drains.items():
            end = _DrainEnd(one.uid, one.finished)
            if one.phase is not Phase.RUNNING and self._ended.get(node) != end:
                self._ended[node] = end
                self._counters.add(catalogue.DRAINS, _DRAINS[one.phase])
                began = self._began.get(node)
                if one.phase is Phase.DRAINED and began is not None and one.finished is not None:
                    seconds = max(0.0, (one.finished - began).total_seconds())
                    self._counters.observe(catalogue.DRAIN_DURATION, seconds)
        self._ended = {node: end for node, end in self._ended.items() if node in drains}
        self._began = {node: began for node, began in self._began.items() if node in drains}

    def keep(self, cases: Sequence[EndedCase]) -> None:
        """Count cases that have ended."""
        for case in cases:
            self._counters.add(catalogue.CASES, case.kind, case.outcome.value)
        missed = [case for case in (*self._missed, *cases) if not case.outcome.good]
        self._missed = tuple(missed[-MISSED_SHOWN:])

    def refused(self, reason: str) -> None:
        """Count an eviction that was refused."""
        self._counters.add(catalogue.EVICTIONS_REFUSED, reason)

    def notice(self, transport: str, *, sent: bool) -> None:
        """Count an attempt to send notices."""
        self._counters.add(catalogue.NOTICES, transport, SENT if sent else NOT_SENT)

    def waiting(self, messages: int | None) -> None:
        """Note how many messages wait to be sent, None if nobody gets any."""
        self._note(waiting=messages)

    def request(self, api: str, method: str, status: int | None, seconds: float, _: str = "") -> None:
        """Count a request; see `Reporter`."""
        self._counters.add(catalogue.API_REQUESTS, api, method, "none" if status is None else str(status))
        self._counters.observe(catalogue.API_REQUEST_DURATION, seconds, api)

    def unexpected(self) -> None:
        """Count an error in this program."""
        self._counters.add(catalogue.UNEXPECTED_ERRORS)

    def _note(self, **changes: Any) -> None:
        # The thread of notices and that of passes come here.
        with self._lock:
            self._process = replace(self._process, **changes)

    def _samples(self) -> tuple[Sample, ...]:
        shown = self._pass
        others = (*self._others.samples(), *missed_samples(self._missed))
        found = (*process_samples(self._process), *others)
        return found if shown is None else (*found, *pass_samples(shown))


class _Errors(logging.Handler):
    """Calls a function for each error that is logged and that no code expected.

    A job that is repeated also logs errors that the program raises on purpose, without their traceback.
    """

    def __init__(self, count: Callable[[], None]) -> None:
        super().__init__(logging.ERROR)
        self._count = count

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] == "reconciler" or record.exc_info:
            self._count()
