"""Samples in the form of prometheus-client, as the text that Prometheus reads, and to a Pushgateway."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import urllib3
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from jobs.runtime.metrics import Family, Sample, Type
from reconciler.features.metrics.catalogue import FAMILIES, NODE_HOLD_SINCE
from reconciler.features.metrics.samples import HoldsSince
from reconciler.http.bounded import BoundedClient, Bounds
from reconciler.model import limits
from reconciler.model.errors import GatewayError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

JOB = "node-maintenance"
"""The value of the label `job` at a Pushgateway."""

TOTAL = 10.0
"""Seconds for the whole request to it with its answer."""

_SIZE = 1 << 16

# As prometheus-client has it, where the name is another one.
_TYPES = {Type.UNTYPED: "unknown"}

# Each counter would have a second series with the moment of its creation.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Samples(Collector):
    """Shows samples that are made when somebody asks, so a series vanishes with what it is about."""

    def __init__(self, make: Callable[[], Iterable[Sample]]) -> None:
        """Use this function, which may be called from any thread."""
        self._make = make

    def collect(self) -> Iterator[Metric]:
        """Yield the families that have samples. Of two samples with the same labels the last one stays."""
        families: dict[Family, dict[tuple[str, ...], float]] = {}
        for sample in self._make():
            labels = tuple(_label(value) for value in sample.labels)
            families.setdefault(sample.family, {})[labels] = sample.value
        for family, values in families.items():
            metric = Metric(family.name, family.help, _TYPES.get(family.type, family.type.value))
            for labels, value in values.items():
                metric.add_sample(family.name, dict(zip(family.labels, labels, strict=True)), value)
            yield metric


class Counters:
    """The counters and histograms of the catalogue, from zero; safe for threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Show them in this registry."""
        self._counters: dict[Family, Counter] = {}
        self._histograms: dict[Family, Histogram] = {}
        for family in FAMILIES:
            if family.type is Type.COUNTER:
                self._counters[family] = Counter(family.name, family.help, family.labels, registry=registry)
            elif family.type is Type.HISTOGRAM:
                self._histograms[family] = Histogram(
                    family.name, family.help, family.labels, registry=registry, buckets=family.bounds
                )

    def add(self, family: Family, *labels: str, by: float = 1) -> None:
        """Count `by` more; 0 shows the series, so that its first increase can be seen."""
        counter = self._counters[family]
        (counter.labels(*map(_label, labels)) if family.labels else counter).inc(by)

    def observe(self, family: Family, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        histogram = self._histograms[family]
        (histogram.labels(*map(_label, labels)) if family.labels else histogram).observe(value)


class MetricsSnapshot(Collector):
    """What a registry shows at one moment."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Take all families now."""
        self._families = tuple(registry.collect())

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        return self._families

    def text(self) -> bytes:
        """Return all families as the text that Prometheus reads (UTF-8)."""
        return to_text(self)


def holds_in(text: str) -> HoldsSince:
    """Return since when nodes are held, as the text says that an earlier process has left.

    A moment that can't be meant is left out. Raises ValueError if the text is not that of Prometheus.
    """
    since: dict[tuple[str, str], datetime] = {}
    for family in text_string_to_metric_families(text):
        if family.name == NODE_HOLD_SINCE.name:
            for sample in family.samples:
                moment = limits.EARLIEST.timestamp() <= sample.value <= limits.LATEST.timestamp()
                if moment and set(sample.labels) == set(NODE_HOLD_SINCE.labels):
                    node, code = (sample.labels[key] for key in NODE_HOLD_SINCE.labels)
                    since[node, code] = datetime.fromtimestamp(sample.value, UTC)
    return since


def to_text(registry: Collector) -> bytes:
    """Return all families as the text that Prometheus reads (UTF-8)."""
    return generate_latest(registry)


def push(url: str, metrics: Collector) -> None:
    """Send the metrics to the Pushgateway at this URL, which has no path; raises GatewayError.

    It is one request, which replaces what the last one sent.
    """
    client = BoundedClient("pushgateway")
    where, headers = f"{url.rstrip('/')}/metrics/job/{JOB}", {"Content-Type": CONTENT_TYPE}
    try:
        answer = client.send("PUT", where, Bounds(TOTAL, _SIZE), body=to_text(metrics), headers=headers)
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise GatewayError(f"no answer of the gateway: {' '.join(str(error).split())[:300]}") from error
    finally:
        client.close()
    if answer.status >= 300:
        said = " ".join(answer.data.decode("utf-8", "replace").split())[:200]
        raise GatewayError(f"the gateway answered {answer.status}: {said}")


def _label(value: str) -> str:
    """Return a label's value, which may come from outside, with a limit and as text that UTF-8 can encode."""
    return limits.text(value, limits.NAME).encode("utf-8", "replace").decode()
