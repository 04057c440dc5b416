"""Traces passes, drains and requests with OpenTelemetry. Only a process that traces loads this file.

Spans have names of nodes, kinds of events and numbers of pods. They have no names of pods, no texts of
others, and no paths of requests: the path of a webhook may be a secret.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit

from msgspec import Struct
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from jobs.runtime.process import Observer, Seen
from reconciler import __version__
from reconciler.http.failures import report_requests
from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.errors import NoThread
from reconciler.model.node import Node
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Plan
from reconciler.model.pod import Pod
from reconciler.model.ports import BudgetChange, Evictor, PodChange
from reconciler.threads import start

log = logging.getLogger(__name__)

NAME = "node-maintenance-reconciler"
"""The name of the service, unless OTEL_SERVICE_NAME has another one."""

LAST_SPANS = 3.0
"""Seconds that the end of a process waits for spans that are not sent yet."""

MOST_NODES = 100
"""Changes of nodes that a span of a pass shows."""

_NODE = "k8s.node.name"
_OURS = "node_maintenance"
_GOOD_ENDS = (Phase.DRAINED, Phase.STOPPED, Phase.NODE_GONE)
_FIRST_REFUSAL = 400


def exporter(warn: Callable[[str], object]) -> SpanExporter:
    """Return what sends spans by OTLP, as the environment says; `warn` gets once why that fails."""
    # Its warnings have values of variables in them, and are repeated.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    return _Quiet(OTLPSpanExporter(), warn)


class OtelTracing(Observer):
    """Traces passes, drains and their requests; safe for threads. No pass and no drain waits for a span."""

    def __init__(self, spans: SpanExporter, processor: SpanProcessor | None = None) -> None:
        """Send spans from a thread of its own; `processor` hands them on in another way."""
        about: dict[str, AttributeValue] = {SERVICE_VERSION: __version__}
        if not os.environ.get("OTEL_SERVICE_NAME"):
            about[SERVICE_NAME] = NAME
        pod = {"k8s.namespace.name": "POD_NAMESPACE", "k8s.pod.name": "POD_NAME", "k8s.pod.uid": "POD_UID"}
        about |= {key: os.environ[name] for key, name in pod.items() if os.environ.get(name)}
        # The end of the interpreter must not wait for a receiver that hangs.
        self._provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
        self._provider.add_span_processor(processor or BatchSpanProcessor(spans))
        self._tracer = self._provider.get_tracer(NAME, __version__)
        self._drains: dict[str, _Drain] = {}
        self._changed = threading.Lock()
        self._end_reports: Callable[[], None] | None = None

    def __enter__(self) -> OtelTracing:
        """Trace requests from now on."""
        self._end_reports = report_requests(self._request)
        return self

    def __exit__(self, *_: object) -> None:
        """Send what is left, for `LAST_SPANS` at most."""
        if self._end_reports is not None:
            self._end_reports()
        self.stopped()
        with suppress(NoThread):
            start("last-spans", self._provider.shutdown).join(LAST_SPANS)

    @contextmanager
    def passing(self) -> Iterator[Seen]:
        """Trace a pass, and the requests that its thread sends in it."""
        span = self._tracer.start_span("pass", context=contexts.Context())
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield partial(_show, span)
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            span.end()

    def ordered(self, order: DrainOrder) -> None:
        """Trace a drain from now on, linked to the pass that orders it first."""
        with self._changed:
            known = self._drains.get(order.node)
            if known is not None:
                if known.since == order.since:
                    return
                known.span.end()
            by = trace.get_current_span().get_span_context()
            span = self._tracer.start_span(
                "drain",
                context=contexts.Context(),
                links=[Link(by)] if by.is_valid else [],
                attributes={_NODE: order.node, f"{_OURS}.why": order.why},
            )
            self._drains[order.node] = _Drain(order.since, span)

    def progressed(self, progress: DrainProgress) -> None:
        """End the span of a drain that has ended."""
        if progress.phase is Phase.RUNNING:
            return
        with self._changed:
            known = self._drains.pop(progress.node, None)
        if known is None:
            return
        known.span.set_attributes(
            {
                f"{_OURS}.phase": str(progress.phase),
                f"{_OURS}.pods": progress.total,
                f"{_OURS}.pods_gone": progress.gone,
                f"{_OURS}.pods_evicted": progress.evicted,
                f"{_OURS}.pods_blocked": len(progress.blockers),
            }
        )
        if progress.phase not in _GOOD_ENDS:
            known.span.set_status(Status(StatusCode.ERROR, str(progress.phase)))
        known.span.end()

    def stopped(self) -> None:
        """End the spans of drains that go on in the next process."""
        with self._changed:
            left, self._drains = self._drains, {}
        for known in left.values():
            known.span.set_attribute(f"{_OURS}.phase", str(Phase.RUNNING))
            known.span.end()

    def evictor(self, evictor: Evictor) -> Evictor:
        """Return what does the same, and traces the requests for a node as parts of its drain."""
        return _Traced(evictor, self._within)

    @contextmanager
    def _within(self, node: str) -> Iterator[None]:
        """Make the drain of a node the parent of the spans of this thread."""
        known = self._drains.get(node)
        if known is None:
            yield
            return
        token = contexts.attach(trace.set_span_in_context(known.span))
        try:
            yield
        finally:
            contexts.detach(token)

    def _request(self, api: str, method: str, status: int | None, seconds: float, path: str) -> None:
        """Trace a request that has ended, if it belongs to a pass or a drain; see `Reporter`."""
        if not trace.get_current_span().get_span_context().is_valid:
            # Watches and the renewal of the lock would be most of all spans.
            return
        ended = time.time_ns()
        resource = _resource_of(path) if api == "kubernetes" else ""
        attributes: dict[str, AttributeValue] = {f"{_OURS}.api": api, "http.request.method": method}
        if status is not None:
            attributes["http.response.status_code"] = status
        if resource:
            attributes[f"{_OURS}.resource"] = resource
        span = self._tracer.start_span(
            f"{method} {resource or api}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=ended - int(seconds * 1e9),
        )
        if status is None or status >= _FIRST_REFUSAL:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended)


class _Drain(Struct, frozen=True):
    """The span of a drain that runs, and the start of its attempt (UTC)."""

    since: datetime
    span: Span


class _Traced:
    """An Evictor whose requests for a node are parts of the drain of this node."""

    def __init__(self, evictor: Evictor, within: Callable[[str], AbstractContextManager[None]]) -> None:
        self._evictor, self._within = evictor, within

    def node(self, name: str) -> Node | None:
        """Return the node as it is now, None if it is gone."""
        with self._within(name):
            return self._evictor.node(name)

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of the node, or of all."""
        with self._within(node or ""):
            return self._evictor.pods(node, placement=placement)

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        """Watch the pods of the node. The watch is no part of its drain: it outlives a request."""
        return self._evictor.watch_pods(node)

    def watch_budgets(self, namespace: str = "") -> AbstractContextManager[Iterator[BudgetChange]]:
        """Watch the PodDisruptionBudgets, which are those of many drains."""
        return self._evictor.watch_budgets(namespace)

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """Evict the pod."""
        with self._within(pod.node):
            self._evictor.evict(pod, grace=grace)

    def delete(self, pod: Pod, *, grace: int | None) -> None:
        """Delete the pod."""
        with self._within(pod.node):
            self._evictor.delete(pod, grace=grace)

    def restart(self, pod: Pod, now: datetime) -> str:
        """Restart the Deployment of the pod, and return its name."""
        with self._within(pod.node):
            return self._evictor.restart(pod, now)

    def attachments(self, node: str, staying: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Return the names of the VolumeAttachments that are still on the node."""
        with self._within(node):
            return self._evictor.attachments(node, staying)


class _Quiet(SpanExporter):
    """Says once that spans can't be sent, and once that they can. The library would say it each time."""

    def __init__(self, inner: SpanExporter, warn: Callable[[str], object]) -> None:
        self._inner, self._warn, self._failed = inner, warn, False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans."""
        try:
            result = self._inner.export(spans)
        except Exception:  # noqa: BLE001 - any error of the library is one of sending
            result = SpanExportResult.FAILURE
        failed = result is not SpanExportResult.SUCCESS
        if failed != self._failed:
            self._failed = failed
            self._warn("traces can't be sent, and are lost" if failed else "traces are sent again")
        return result

    def shutdown(self) -> None:
        """Send nothing more."""
        self._inner.shutdown()


def _show(span: Span, plan: Plan, outcomes: Sequence[Outcome]) -> None:
    failed = sum(outcome.result is Result.FAILED for outcome in outcomes)
    span.set_attributes(
        {
            f"{_OURS}.mode": str(plan.mode),
            f"{_OURS}.nodes": plan.managed,
            f"{_OURS}.actions": len(outcomes),
            f"{_OURS}.actions_failed": failed,
            f"{_OURS}.places_taken": len(plan.budget.holders),
        }
    )
    changed = [node for node in plan.nodes if node.before is not node.after]
    for node in changed[:MOST_NODES]:
        attributes: dict[str, AttributeValue] = {
            _NODE: node.node,
            f"{_OURS}.kinds": sorted({str(judged.event.kind) for judged in node.events}),
            f"{_OURS}.before": str(node.before),
            f"{_OURS}.after": str(node.after),
        }
        span.add_event("node", attributes)
    if failed:
        span.set_status(Status(StatusCode.ERROR, "actions have failed"))


def _resource_of(path: str) -> str:
    """Return what a path of the API server asks for, without names: `pods/eviction`."""
    parts = [part for part in urlsplit(path).path.split("/") if part]
    start = next((at for at, part in enumerate(parts) if part in ("api", "apis")), None)
    if start is None:
        return ""
    rest = parts[start + (2 if parts[start] == "api" else 3) :]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    return "/".join((*rest[:1], *rest[2:3]))
