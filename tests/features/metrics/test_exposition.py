"""The text that Prometheus reads: one line for each series, whatever the labels have in them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from jobs.runtime.metrics import Family, Sample, Type
from reconciler.features.metrics import catalogue
from reconciler.features.metrics.exposition import Counters, Samples, to_text


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def lines(registry: CollectorRegistry) -> list[str]:
    return [line for line in to_text(registry).decode().splitlines() if not line.startswith("#")]


def read(registry: CollectorRegistry) -> dict[tuple[str, tuple[str, ...]], float]:
    """The series as a reader of the format understands them."""
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(to_text(registry).decode())
        for sample in family.samples
    }


def test_samples_are_made_when_somebody_asks_and_vanish_with_what_they_are_about(
    registry: CollectorRegistry,
) -> None:
    now = [Sample(catalogue.NODE_HOLD, 1, ("a", "windowOpen")), Sample(catalogue.PASS_NODES, 3)]
    registry.register(Samples(lambda: now))

    assert lines(registry) == [
        'node_maintenance_node_hold{code="windowOpen",node="a"} 1.0',
        "node_maintenance_pass_nodes 3.0",
    ]
    assert b"# TYPE node_maintenance_node_hold gauge\n" in to_text(registry)
    del now[0]
    assert lines(registry) == ["node_maintenance_pass_nodes 3.0"]


def test_labels_from_outside_stay_labels(registry: CollectorRegistry) -> None:
    def made() -> Iterator[Sample]:
        yield Sample(catalogue.NODE_HOLD, 1, ('a"} 7\nevil 1', "x" * 9999))
        yield Sample(catalogue.NODE_HOLD, 2, ("\ud800", "é"))

    registry.register(Samples(made))

    found = read(registry)
    assert [name for name, _ in found] == ["node_maintenance_node_hold"] * 2
    assert max(len(label) for _, labels in found for label in labels) < 300
    assert set(found.values()) == {1, 2}


def test_two_samples_with_the_same_labels_are_one_series(registry: CollectorRegistry) -> None:
    """A scrape with one series twice is refused as a whole."""
    registry.register(Samples(lambda: [Sample(catalogue.PASS_NODES, count) for count in (1, 2)]))

    assert lines(registry) == ["node_maintenance_pass_nodes 2.0"]


def test_counters_and_histograms_count_from_zero(registry: CollectorRegistry) -> None:
    counters = Counters(registry)
    counters.add(catalogue.PASSES, "failed", by=0)
    counters.add(catalogue.PASSES, "succeeded")
    counters.add(catalogue.PASSES, "succeeded")
    counters.add(catalogue.UNEXPECTED_ERRORS)
    counters.observe(catalogue.PASS_DURATION, 0.3)
    counters.observe(catalogue.API_REQUEST_DURATION, 0.3, "arm")

    found = read(registry)
    assert found["node_maintenance_passes_total", ("failed",)] == 0
    assert found["node_maintenance_passes_total", ("succeeded",)] == 2
    assert found["node_maintenance_unexpected_errors_total", ()] == 1
    assert found["node_maintenance_pass_duration_seconds_bucket", ("0.25",)] == 0
    assert found["node_maintenance_pass_duration_seconds_bucket", ("0.5",)] == 1
    assert found["node_maintenance_api_request_duration_seconds_sum", ("arm",)] == 0.3
    assert not any(name.endswith("_created") for name, _ in found)


def test_the_metrics_of_a_feature_are_shown_with_their_own_names(registry: CollectorRegistry) -> None:
    cranes = Family("crane_lifts", Type.UNTYPED, "Lifts.", ("owner",))
    registry.register(Samples(lambda: [Sample(cranes, 2, ("a",)), Sample(cranes, math.inf, ("b",))]))

    assert b"# TYPE crane_lifts untyped\n" in to_text(registry)
    assert lines(registry) == ['crane_lifts{owner="a"} 2.0', 'crane_lifts{owner="b"} +Inf']
