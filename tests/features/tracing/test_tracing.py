"""Passes, drains and requests are traced if the environment says so; nothing is loaded and sent else."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import cast

import pytest
import urllib3
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from jobs.runtime.process import Observer
from reconciler.features.tracing import otel
from reconciler.features.tracing.otel import OtelTracing
from reconciler.features.tracing.process import tracing_of
from reconciler.http.bounded import bound
from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.errors import Unreachable
from reconciler.model.event import Kind
from reconciler.model.outcome import Outcome, Result
from reconciler.model.pod import Pod
from reconciler.model.ports import Evictor
from reconciler.model.values import replace
from tests.support.builders import NOW, minutes, node, planned, reported, settings, signal, snapshot
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.threads import Once, refused
from tests.support.stub import Answer, Asked, Stub, status

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
ORDER = DrainOrder("a", "uid-a", NOW, None, why="Redeploy without a date")
SECRET = "/services/T000/secret"
POD = Pod("shop", "web-1", "uid", "a")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The level of the library's log is as before after each test."""
    logger = logging.getLogger("opentelemetry")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(spans: InMemorySpanExporter) -> Iterator[OtelTracing]:
    with OtelTracing(spans, SimpleSpanProcessor(spans)) as made:
        yield made


@pytest.fixture
def server() -> Iterator[Stub]:
    stub = Stub(lambda asked: status(429, "TooManyRequests") if "eviction" in asked.path else Answer())
    yield stub
    stub.close()


def traced(receiver: Stub, warn: Callable[[str], object]) -> Observer:
    tracing = tracing_of({ENDPOINT: receiver.url}, warn)
    assert tracing is not None
    return tracing


class Api:
    """Sends requests as to the API server and to a webhook. It is as much of an Evictor as is needed."""

    def __init__(self, server: Stub) -> None:
        self.server = server
        self.pools = {name: urllib3.PoolManager(retries=False) for name in ("kubernetes", "hooks")}
        for name, pool in self.pools.items():
            bound(pool, name)

    def get(self, path: str, api: str = "kubernetes", method: str = "GET") -> None:
        self.pools[api].request(method, f"{self.server.url}{path}")

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        self.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction", method="POST")


@pytest.fixture
def api(server: Stub) -> Iterator[Api]:
    made = Api(server)
    yield made
    for pool in made.pools.values():
        pool.clear()


def named(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def values(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


# Off.


@pytest.mark.heavy
def test_without_an_endpoint_nothing_of_opentelemetry_is_loaded() -> None:
    code = (
        "import sys, jobs.commands.serve, jobs.commands.sweep\n"
        "from reconciler.features.tracing.process import tracing_of\n"
        "assert tracing_of({}, print) is None\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("variables", "warning"),
    [
        pytest.param({ENDPOINT: " "}, "", id="an empty endpoint"),
        pytest.param({ENDPOINT: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "TRUE"}, "", id="disabled"),
        pytest.param({ENDPOINT: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, "", id="no exporter"),
        pytest.param(
            {ENDPOINT: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "the protocol 'grpc' is not supported",
            id="another protocol",
        ),
    ],
)
def test_nothing_is_traced_and_another_protocol_is_a_warning(variables: dict[str, str], warning: str) -> None:
    warned: list[str] = []

    assert tracing_of(variables, warned.append) is None
    assert [warning in one for one in warned] == [True] * bool(warning)


def test_where_no_thread_can_start_the_process_ends_without_its_last_spans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receiver = Stub(lambda _: Answer())
    monkeypatch.setenv(ENDPOINT, receiver.url)
    refuses, tracing = Once("last-spans"), traced(receiver, print)
    with refused(refuses), tracing:
        pass
    assert refuses.left == []
    # Ends the thread of the library.
    with tracing:
        pass
    receiver.close()


def test_variables_that_the_library_refuses_stop_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> SpanExporter:
        raise ValueError("secret")

    monkeypatch.setattr(otel, "exporter", broken)
    warned: list[str] = []

    assert tracing_of({ENDPOINT: "http://127.0.0.1:1"}, warned.append) is None
    assert warned == ["nothing is traced: a variable OTEL_… can't be read (ValueError)"]


def test_without_the_extra_a_warning_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setitem(sys.modules, "reconciler.features.tracing.otel", None)

    assert tracing_of({ENDPOINT: "http://127.0.0.1:1"}, warned.append) is None
    assert warned == ["nothing is traced: install the extra [otel]"]


# On.


def test_a_pass_has_its_changes_and_its_requests(
    tracing: OtelTracing, spans: InMemorySpanExporter, api: Api
) -> None:
    event = reported(signal(Kind.REDEPLOY, not_before=NOW + minutes(9)))
    plan = planned(snapshot(node("a"), readings={"a": event}), settings("mode: Enforce"))
    with tracing.passing() as seen:
        api.get("/api/v1/nodes?limit=500")
        api.get("/api/v1/nodes/a")
        api.get("/k8s/clusters/c/apis/apps/v1/namespaces/shop/deployments/web/scale")
        api.get(SECRET, "hooks")
        seen(plan, (Outcome("a", "cordon", Result.FAILED),))

    found = spans.get_finished_spans()
    assert [one.name for one in found] == [
        "GET nodes",
        "GET nodes",
        "GET deployments/scale",
        "GET hooks",
        "pass",
    ]
    whole = found[-1]
    assert whole.parent is None
    assert {one.parent.span_id for one in found[:-1] if one.parent} == {whole.context.span_id}
    assert values(whole)["node_maintenance.actions_failed"] == 1
    assert whole.status.status_code is StatusCode.ERROR
    (change,) = whole.events
    assert dict(change.attributes or {}) == {
        "k8s.node.name": "a",
        "node_maintenance.kinds": ("Redeploy",),
        "node_maintenance.before": "operational",
        "node_maintenance.after": "in-maintenance",
    }
    assert "secret" not in "".join(one.to_json() for one in found)


def test_a_request_takes_as_long_as_it_took(
    tracing: OtelTracing, spans: InMemorySpanExporter, api: Api
) -> None:
    with tracing.passing():
        api.get("/api/v1/nodes")

    request, whole = spans.get_finished_spans()
    assert whole.start_time is not None
    assert request.start_time is not None
    assert request.end_time is not None
    # The clocks of durations and of moments differ by a little.
    assert whole.start_time - 10**8 < request.start_time < request.end_time


def test_a_pass_that_fails_says_how_and_not_with_which_text(
    tracing: OtelTracing, spans: InMemorySpanExporter
) -> None:
    with pytest.raises(Unreachable), tracing.passing():
        raise Unreachable("secret")

    (span,) = spans.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "Unreachable")
    assert "secret" not in span.to_json()


def test_what_belongs_to_no_pass_and_no_drain_is_not_traced(
    tracing: OtelTracing, spans: InMemorySpanExporter, api: Api
) -> None:
    api.get("/apis/coordination.k8s.io/v1/namespaces/node-maintenance/leases/reconciler-lock")

    assert spans.get_finished_spans() == ()


def test_a_drain_has_its_evictions_and_a_link_to_the_pass_that_ordered_it(
    tracing: OtelTracing, spans: InMemorySpanExporter, api: Api
) -> None:
    traced = tracing.evictor(cast(Evictor, api))
    with tracing.passing():
        tracing.ordered(ORDER)
    tracing.ordered(ORDER)
    thread = threading.Thread(target=lambda: traced.evict(POD, grace=None))
    thread.start()
    thread.join()
    tracing.progressed(DrainProgress("a", "uid-a", Phase.RUNNING))
    tracing.progressed(DrainProgress("a", "uid-a", Phase.TIMED_OUT, total=3, gone=2, evicted=2))

    found = named(spans)
    assert set(found) == {"pass", "drain", "POST pods/eviction"}
    drain, request = found["drain"], found["POST pods/eviction"]
    assert drain.parent is None
    assert [one.context.span_id for one in drain.links] == [found["pass"].context.span_id]
    assert request.parent is not None
    assert request.parent.span_id == drain.context.span_id
    assert values(request)["http.response.status_code"] == 429
    assert request.status.status_code is StatusCode.ERROR
    assert values(drain) == {
        "k8s.node.name": "a",
        "node_maintenance.why": "Redeploy without a date",
        "node_maintenance.phase": "timed out",
        "node_maintenance.pods": 3,
        "node_maintenance.pods_gone": 2,
        "node_maintenance.pods_evicted": 2,
        "node_maintenance.pods_blocked": 0,
    }
    assert drain.status.status_code is StatusCode.ERROR
    assert "web-1" not in "".join(one.to_json() for one in found.values())


def test_a_drain_that_begins_again_is_another_span_and_the_end_of_the_process_ends_it(
    tracing: OtelTracing, spans: InMemorySpanExporter
) -> None:
    tracing.ordered(ORDER)
    tracing.ordered(replace(ORDER, since=NOW + timedelta(hours=1)))
    tracing.stopped()

    first, second = spans.get_finished_spans()
    assert (first.name, second.name) == ("drain", "drain")
    assert values(second)["node_maintenance.phase"] == "running"


# Sending.


def test_the_receiver_of_the_environment_gets_the_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = Stub(lambda _: Answer(content_type="application/x-protobuf", body=b""))
    monkeypatch.setenv(ENDPOINT, receiver.url)
    warned: list[str] = []
    try:
        with traced(receiver, warned.append) as tracing, tracing.passing():
            pass
    finally:
        receiver.close()

    (asked,) = receiver.asked
    assert (asked.method, asked.path) == ("POST", "/v1/traces")
    sent = ExportTraceServiceRequest.FromString(asked.body).resource_spans[0]
    assert [one.name for each in sent.scope_spans for one in each.spans] == ["pass"]
    service = {one.key: one.value.string_value for one in sent.resource.attributes}
    assert service["service.name"] == "node-maintenance-reconciler"
    assert warned == []


def test_a_receiver_that_refuses_is_a_warning_once(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = threading.Event()

    def answer(asked: Asked) -> Answer:
        if asked.number:
            refused.set()
        return status(400, "BadRequest", "no")

    receiver = Stub(answer)
    monkeypatch.setenv(ENDPOINT, receiver.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    warned: list[str] = []
    try:
        with traced(receiver, warned.append) as tracing:
            while not refused.wait(0.02):
                with tracing.passing():
                    pass
    finally:
        receiver.close()

    assert warned == ["traces can't be sent, and are lost"]


@pytest.mark.heavy
def test_neither_a_pass_nor_the_end_waits_for_a_receiver_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(_: Asked) -> Answer:
        asked.set()
        go_on.wait(60)
        return Answer()

    receiver = Stub(answer)
    monkeypatch.setenv(ENDPOINT, receiver.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    monkeypatch.setattr(otel, "LAST_SPANS", 0.05)
    try:
        with traced(receiver, print) as tracing:
            with tracing.passing():
                pass
            assert asked.wait(60)
            for _ in range(5000):
                with tracing.passing():
                    pass
        # The first request has no answer to this moment.
        assert len(receiver.asked) == 1
    finally:
        go_on.set()
        # A thread that still tries to send draws random numbers, which a property of a later test refuses.
        names = {"last-spans", "OtelBatchSpanRecordProcessor"}
        wait_for("the end", lambda: not names & {thread.name for thread in threading.enumerate()}, seconds=60)
        receiver.close()
