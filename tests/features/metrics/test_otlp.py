"""Metrics by OTLP: what a receiver gets, and what becomes of one that does not take them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client import CollectorRegistry

from jobs.runtime.metrics import Sample
from reconciler.features.metrics import catalogue
from reconciler.features.metrics import otlp as otlp_metrics
from reconciler.features.metrics.exposition import Counters, MetricsSnapshot, Samples
from reconciler.features.metrics.otlp import push
from reconciler.model.errors import GatewayError
from tests.support.builders import NOW, minutes
from tests.support.stub import Answer, Stub

BEGAN = NOW - minutes(1)


@pytest.fixture
def answers() -> list[Answer]:
    return [Answer(b"", content_type="application/x-protobuf")]


@pytest.fixture
def receiver(answers: list[Answer]) -> Iterator[Stub]:
    stub = Stub(lambda _: answers[0])
    yield stub
    stub.close()


@pytest.fixture
def taken() -> MetricsSnapshot:
    """A gauge, a counter, and a histogram with three values."""
    registry = CollectorRegistry()
    registry.register(Samples(lambda: [Sample(catalogue.NODE_HOLD, 1, ("a", "windowOpen"))]))
    counters = Counters(registry)
    counters.add(catalogue.PASSES, "failed", by=2)
    for seconds in (0.3, 0.3, 7.0, 999.0):
        counters.observe(catalogue.PASS_DURATION, seconds)
    return MetricsSnapshot(registry)


def received(receiver: Stub) -> dict[str, Any]:
    """The metrics of the one request, by name."""
    (asked,) = receiver.asked
    assert (asked.method, asked.path) == ("POST", "/v1/metrics")
    (of_resource,) = ExportMetricsServiceRequest.FromString(asked.body).resource_metrics
    named = {one.key: one.value.string_value for one in of_resource.resource.attributes}
    assert named["service.name"] == "node-maintenance-reconciler"
    (scope,) = of_resource.scope_metrics
    return {one.name: one for one in scope.metrics}


def test_each_family_has_its_name_of_prometheus_and_its_own_kind(
    receiver: Stub, taken: MetricsSnapshot
) -> None:
    push(f"{receiver.url}/", taken, BEGAN, NOW)

    found = received(receiver)
    (held,) = found["node_maintenance_node_hold"].gauge.data_points
    assert {one.key: one.value.string_value for one in held.attributes} == {"node": "a", "code": "windowOpen"}
    assert (held.as_double, held.time_unix_nano) == (1, int(NOW.timestamp() * 1e9))
    passes = found["node_maintenance_passes_total"].sum
    assert (passes.is_monotonic, passes.aggregation_temporality) == (True, 2)
    assert [(one.as_double, one.start_time_unix_nano) for one in passes.data_points] == [
        (2, int(BEGAN.timestamp() * 1e9))
    ]


def test_a_histogram_has_each_value_in_one_bucket(receiver: Stub, taken: MetricsSnapshot) -> None:
    push(receiver.url, taken, BEGAN, NOW)

    (point,) = received(receiver)["node_maintenance_pass_duration_seconds"].histogram.data_points
    bounds = catalogue.PASS_DURATION.bounds
    assert tuple(point.explicit_bounds) == bounds
    full = {bounds.index(0.5): 2, bounds.index(10): 1, len(bounds): 1}
    assert list(point.bucket_counts) == [full.get(place, 0) for place in range(len(bounds) + 1)]
    assert (point.count, point.sum) == (4, 1006.6)


def test_a_receiver_that_does_not_take_them_is_one_error_without_lines_of_the_library(
    receiver: Stub, answers: list[Answer], taken: MetricsSnapshot, caplog: pytest.LogCaptureFixture
) -> None:
    answers[0] = Answer(b"no", status=400)

    with caplog.at_level(logging.INFO, "opentelemetry"):
        with pytest.raises(GatewayError, match="does not answer, or refuses them"):
            push(receiver.url, taken, BEGAN, NOW)

        assert caplog.records == []
        assert logging.getLogger("opentelemetry").level == logging.INFO


def test_a_receiver_that_hangs_ends_with_its_time(
    receiver: Stub, answers: list[Answer], taken: MetricsSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_metrics, "TOTAL", 0.2)
    answers[0] = Answer(hang=True)

    with pytest.raises(GatewayError):
        push(receiver.url, taken, BEGAN, NOW)
