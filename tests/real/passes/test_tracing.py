"""A sweep with a receiver of traces: its passes, its drain and their requests come as spans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.support.stub import Answer, Stub

pytestmark = pytest.mark.slow


@pytest.fixture
def receiver() -> Iterator[Stub]:
    made = Stub(lambda _: Answer(b"", content_type="application/x-protobuf"))
    yield made
    made.close()


def spans(receiver: Stub) -> list[Span]:
    """Every span that has come."""
    requests = [ExportTraceServiceRequest.FromString(asked.body) for asked in receiver.asked]
    resources = [one for request in requests for one in request.resource_spans]
    return [span for one in resources for scope in one.scope_spans for span in scope.spans]


def test_a_sweep_sends_its_passes_its_drain_and_their_requests(
    scene: Scene, programs: Programs, receiver: Stub
) -> None:
    programs.configure(ENFORCE)
    node = scene.node()
    scene.workload("web", node, replicas=2)
    scene.condition_tells(node)

    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    done = programs.start("sweep", "--for", "30s", pod=variables).wait()

    assert (done.code, done.err) == (0, "")
    found = spans(receiver)
    (drain,) = [one for one in found if one.name == "drain"]
    passes = [one for one in found if one.name == "pass"]
    values = {one.key: one.value for one in drain.attributes}
    assert values["k8s.node.name"].string_value == node
    assert values["node_maintenance.phase"].string_value == "drained"
    assert values["node_maintenance.pods_evicted"].int_value == 2
    assert drain.links[0].span_id in {one.span_id for one in passes}
    evictions = [one for one in found if one.name == "POST pods/eviction"]
    assert [one.parent_span_id for one in evictions] == [drain.span_id] * 2
    (cordon,) = [one for one in found if one.name == "PATCH nodes"][:1]
    assert cordon.parent_span_id == passes[0].span_id
    whole = {one.span_id for one in (*passes, drain)}
    assert {one.parent_span_id for one in found if one.span_id not in whole} <= whole
    assert not [one for one in found if "leases" in one.name and one.parent_span_id not in whole]
