"""Where a command that ends leaves its metrics: a file, a Pushgateway, or a receiver of OTLP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from jobs.runtime.counting import Counting
from jobs.runtime.output import check_output, write_output
from reconciler.model.drains import DrainProgress
from reconciler.model.errors import GatewayError, OutputError, ReconcilerError
from reconciler.model.plan import Plan
from reconciler.model.problems import guarded

if TYPE_CHECKING:
    from jobs.runtime.metering import Meter
    from reconciler.features.metrics.exposition import Taken
    from reconciler.features.metrics.samples import HoldsSince

Value = TypeVar("Value")

LARGEST = 64 << 20
"""Bytes of an earlier file that are read."""


class MetricsOutput(Struct, frozen=True):
    """What the options say: the file, and the URLs of the gateway and of the receiver of OTLP."""

    metrics_file: Path | None = None
    metrics_push: str | None = None
    metrics_otlp: str | None = None

    @property
    def wanted(self) -> bool:
        """Whether there is any."""
        return self != MetricsOutput()


class MetricsOfRun:
    """Counts one run, and leaves what it has counted. Without any output it loads and counts nothing."""

    def __init__(self, output: MetricsOutput, warn: Callable[[str], object]) -> None:
        """Leave it there; `warn` gets why that failed. Raises OutputError if the file has no folder."""
        self._output, self._warn = output, warn
        self._meter: Meter | None = None
        self._taken: Taken | None = None
        self._began = datetime.now(UTC)
        self.counting = Counting()
        if output.metrics_file is not None:
            check_output(output.metrics_file)
        if output.wanted:
            from jobs.runtime.metering import Meter

            self.counting = self._meter = Meter(self._holds())

    def __enter__(self) -> MetricsOfRun:
        """Begin to count."""
        if self._meter is not None:
            self._meter.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave what `take` has taken. Nothing is left by a run without a plan: the last one's stays."""
        if self._meter is not None:
            self._meter.__exit__()
        if self._taken is None:
            return
        if self._output.metrics_file is not None:
            try:
                write_output(self._output.metrics_file, self._taken.text().decode())
            except OutputError as failure:
                self._warn(f"the metrics are not in the file: {failure}")
        for send in self._sends(self._taken):
            try:
                send()
            except GatewayError as failure:
                self._warn(f"the metrics are not pushed: {failure}")
            except ImportError:
                self._warn("the metrics are not pushed: --metrics-otlp needs the extra [otel]")

    def _sends(self, taken: Taken) -> Iterator[Callable[[], None]]:
        """Yield what sends the metrics, if it is wanted."""
        if (gateway := self._output.metrics_push) is not None:
            yield partial(_to_gateway, gateway, taken)
        if (receiver := self._output.metrics_otlp) is not None:
            yield partial(_by_otlp, receiver, taken, self._began)

    def timed(self, run: Callable[[], Value]) -> Value:
        """Return what a pass returns, and count it."""
        began = time.monotonic()
        try:
            done = run()
        except ReconcilerError:
            self.counting.failed(time.monotonic() - began)
            raise
        self.counting.succeeded(time.monotonic() - began, datetime.now(UTC))
        return done

    def rehearsed(self, plan: Plan) -> None:
        """Take what is shown after a pass that has written nothing."""
        self.counting.after(plan, {})
        self.take({})

    def take(self, drains: Mapping[str, DrainProgress]) -> None:
        """Take what is shown now, if a pass has succeeded; `drains` are those of this process, by node."""
        self.counting.drains(drains)
        if self._meter is not None and self._meter.has_plan:
            self._taken, _ = guarded("there are no metrics", self._meter.take, None)

    def _holds(self) -> HoldsSince | None:
        """Return since when nodes are held, by the file that the last run has left; None without a file."""
        from reconciler.features.metrics.exposition import holds_in

        if self._output.metrics_file is None:
            return None
        with suppress(OSError, ValueError):
            if self._output.metrics_file.is_file():
                with self._output.metrics_file.open("rb") as file:
                    return holds_in(file.read(LARGEST).decode())
        return {}


def _to_gateway(url: str, taken: Taken) -> None:
    from reconciler.features.metrics.exposition import push

    push(url, taken)


def _by_otlp(url: str, taken: Taken, began: datetime) -> None:
    from reconciler.features.metrics.otlp import push

    push(url, taken, began, datetime.now(UTC))
