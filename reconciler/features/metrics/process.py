"""Counts what a process does, if it shows or leaves metrics."""

from __future__ import annotations

from pathlib import Path

import click

from jobs import options
from jobs.runtime.process import Observer, Process, Surroundings

_OUTPUTS = (
    click.option(
        "--metrics-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write metrics to this file, for the textfile collector of node_exporter.",
    ),
    click.option(
        "--metrics-push",
        type=options.URL,
        metavar="URL",
        help="Send metrics to the Pushgateway at this URL, such as http://pushgateway.monitoring:9091.",
    ),
    click.option(
        "--metrics-otlp",
        type=options.URL,
        metavar="URL",
        help="Send metrics by OTLP to the receiver at this URL, such as http://collector.monitoring:4318.",
    ),
)


def _observer(around: Surroundings, others: Observer) -> Observer | None:
    # Most processes count nothing, and load nothing of this.
    if around.listens:
        from reconciler.features.metrics.metering import Meter

        return Meter(others)
    wanted = {name: value for name, value in around.given.items() if name.startswith("metrics_")}
    if not any(wanted.values()):
        return None
    from reconciler.features.metrics.output import MetricsOutput, RunMeter

    return RunMeter(MetricsOutput(**wanted), around.warn, around.now, others)


PROCESS = Process(options={"sweep": _OUTPUTS, "report": _OUTPUTS}, observer=_observer)
