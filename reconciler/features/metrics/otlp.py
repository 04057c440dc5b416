"""Sends metrics to a receiver of OpenTelemetry, by OTLP over HTTP. It needs the extra [otel]."""

from __future__ import annotations

import logging
import os
from datetime import datetime
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector
from requests.adapters import HTTPAdapter

from reconciler import __version__
from reconciler.http.bounded import Bounds, bound, within_bounds
from reconciler.model.errors import GatewayError

NAME = "node-maintenance-reconciler"
"""The name of the service, unless OTEL_SERVICE_NAME has another one."""

TOTAL = 10.0
"""Seconds for the answer to one request, and after which none is sent again."""

_SIZE = 1 << 16
_TOTAL_SO_FAR = AggregationTemporality.CUMULATIVE


def push(url: str, metrics: Collector, began: datetime, now: datetime) -> None:
    """Send the metrics to the receiver at this URL, to which `/v1/metrics` is added; raises GatewayError.

    Counters count since `began`, and their values are those of `now` (both aware).
    """
    log = logging.getLogger("opentelemetry")
    before = log.level
    # The library's own lines may have a header or an answer in them. What failed is in our error.
    log.setLevel(logging.CRITICAL)
    try:
        with requests.Session() as session, within_bounds(Bounds(TOTAL, _SIZE)):
            for scheme in ("https://", "http://"):
                session.mount(scheme, _Adapter())
            exporter = OTLPMetricExporter(
                endpoint=f"{url.rstrip('/')}/v1/metrics", timeout=TOTAL, session=session
            )
            times = _nanoseconds(began), _nanoseconds(now)
            shown = tuple(_metric(family, times) for family in metrics.collect() if family.samples)
            name = os.environ.get("OTEL_SERVICE_NAME") or NAME
            resource = Resource.create({SERVICE_NAME: name, SERVICE_VERSION: __version__})
            scope = ScopeMetrics(InstrumentationScope(NAME, __version__), shown, "")
            result = exporter.export(MetricsData((ResourceMetrics(resource, (scope,), ""),)))
    except Exception as error:  # noqa: BLE001 - variables and answers are read by a library
        raise GatewayError(f"the metrics can't be sent by OTLP ({type(error).__name__})") from None
    finally:
        log.setLevel(before)
    if result is not MetricExportResult.SUCCESS:
        raise GatewayError("the receiver of OTLP does not answer, or refuses them")


class _Adapter(HTTPAdapter):
    """Makes bounded connections."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, **named)
        bound(self.poolmanager, "otlp")


_Times = tuple[int, int]
"""The start of the counters, and the moment of all values, in nanoseconds of Unix time."""


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1e9)


def _metric(family: Family, times: _Times) -> Metric:
    """Return a family under the name that it has for Prometheus."""
    if family.type == "histogram":
        labels: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
        for sample in family.samples:
            key = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
            part = sample.labels.get("le") or sample.name.rpartition("_")[2]
            labels.setdefault(key, {})[part] = sample.value
        distributions = []
        for key, parts in labels.items():
            buckets = sorted(
                (float(upper), int(count)) for upper, count in parts.items() if upper not in ("sum", "count")
            )
            # Prometheus counts a value in each bucket that it fits into, and OTLP in one.
            counts = [count for _, count in buckets]
            in_one = [count - before for before, count in zip([0, *counts], counts, strict=False)]
            distributions.append(
                HistogramDataPoint(
                    attributes=dict(key),
                    start_time_unix_nano=times[0],
                    time_unix_nano=times[1],
                    count=int(parts["count"]),
                    sum=parts["sum"],
                    bucket_counts=in_one,
                    explicit_bounds=[upper for upper, _ in buckets[:-1]],
                    min=None,  # type: ignore[arg-type]  # the field is optional in OTLP, and not known here
                    max=None,  # type: ignore[arg-type]
                )
            )
        data = Histogram(tuple(distributions), _TOTAL_SO_FAR)
        return Metric(family.name, family.documentation, "", data)
    points = tuple(
        NumberDataPoint(dict(sample.labels), *times, float(sample.value)) for sample in family.samples
    )
    if family.type == "counter":
        counted = Sum(points, _TOTAL_SO_FAR, is_monotonic=True)
        return Metric(f"{family.name}_total", family.documentation, "", counted)
    return Metric(family.name, family.documentation, "", Gauge(points))
