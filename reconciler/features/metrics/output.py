"""Where a command that ends leaves its metrics: a file, a Pushgateway, or a receiver of OTLP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from msgspec import Struct

from jobs.runtime.output import check_output, write_output
from jobs.runtime.process import Observer, Passed
from reconciler.features.metrics.exposition import MetricsSnapshot, holds_in, push
from reconciler.features.metrics.metering import Meter
from reconciler.features.metrics.samples import HoldsSince
from reconciler.model.drains import DrainProgress
from reconciler.model.errors import GatewayError, OutputError

LARGEST = 64 << 20
"""Bytes of an earlier file that are read."""


class MetricsOutput(Struct, frozen=True):
    """What the options say: the file, and the URLs of the gateway and of the receiver of OTLP."""

    metrics_file: Path | None = None
    metrics_push: str | None = None
    metrics_otlp: str | None = None


class RunMeter(Meter):
    """Counts one run, and leaves what it has counted by its end."""

    def __init__(
        self,
        output: MetricsOutput,
        warn: Callable[[str], object],
        now: Callable[[], datetime],
        others: Observer | None = None,
    ) -> None:
        """Leave it there; `warn` gets why that failed, `now` is a clock (aware). See Meter for `others`.

        Raises OutputError if the file has no folder.
        """
        if output.metrics_file is not None:
            check_output(output.metrics_file)
        super().__init__(others, _holds(output.metrics_file))
        self._output, self._warn, self._now = output, warn, now
        self._taken: MetricsSnapshot | None = None
        self._start = now()

    def after(self, passed: Passed) -> None:
        """Show this pass. One that has written nothing is the whole run."""
        super().after(passed)
        if passed.rehearsed:
            self._take()

    def drains(self, drains: Mapping[str, DrainProgress]) -> None:
        """Show these drains, as those at the end of the run."""
        super().drains(drains)
        self._take()

    def _take(self) -> None:
        if self.has_plan:
            self._taken = self.take()

    def __exit__(self, *_: object) -> None:
        """Leave what was taken. Nothing is left by a run without a plan: the last one's stays."""
        super().__exit__()
        if self._taken is None:
            return
        if self._output.metrics_file is not None:
            try:
                write_output(self._output.metrics_file, self._taken.text().decode())
            except OutputError as failure:
                self._warn(f"the metrics are not in the file: {failure}")
        sends: list[Callable[[], None]] = []
        if (gateway := self._output.metrics_push) is not None:
            sends.append(partial(push, gateway, self._taken))
        if (receiver := self._output.metrics_otlp) is not None:
            sends.append(partial(_by_otlp, receiver, self._taken, self._start, self._now()))
        for send in sends:
            try:
                send()
            except GatewayError as failure:
                self._warn(f"the metrics are not pushed: {failure}")
            except ImportError:
                self._warn("the metrics are not pushed: --metrics-otlp needs the extra [otel]")


def _holds(file: Path | None) -> HoldsSince | None:
    """Return since when nodes are held, by the file that the last run has left; None without a file."""
    if file is None:
        return None
    with suppress(OSError, ValueError):
        if file.is_file():
            with file.open("rb") as opened:
                return holds_in(opened.read(LARGEST).decode())
    return {}


def _by_otlp(url: str, taken: MetricsSnapshot, began: datetime, now: datetime) -> None:
    from reconciler.features.metrics.otlp import push

    push(url, taken, began, now)
