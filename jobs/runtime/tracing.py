"""What a process traces of itself: nothing, unless the environment has an endpoint for traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from reconciler.model.drains import DrainOrder, DrainProgress
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.ports import Evictor

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""The variables that switch tracing on."""

PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
"""The only protocol that is supported."""

Seen = Callable[[Plan, Sequence[Outcome]], None]
"""Gets what a pass has decided and done."""


class Tracing:
    """Traces nothing. Its methods may be called from any thread, and raise nothing of their own."""

    active = False
    """Whether anything is traced."""

    def __enter__(self) -> Tracing:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Send what is left, for a short time at most."""

    @contextmanager
    def passing(self) -> Iterator[Seen]:
        """Trace a pass, and the requests that its thread sends in it."""
        yield _unseen

    def ordered(self, order: DrainOrder) -> None:
        """Trace a drain from now on. The same order again changes nothing."""

    def progressed(self, progress: DrainProgress) -> None:
        """End the trace of a drain that has ended."""

    def stopped(self) -> None:
        """End the traces of all drains: this process drains no more."""

    def evictor(self, evictor: Evictor) -> Evictor:
        """Return what does the same, and traces the requests for a node as parts of its drain."""
        return evictor


NOTHING = Tracing()


def tracing_of(
    environment: Mapping[str, str], warn: Callable[[str], object]
) -> AbstractContextManager[Tracing]:
    """Return what traces, if the environment switches it on by the standard variables of OpenTelemetry.

    `warn` gets why nothing is traced although an endpoint is set, and later once why traces can't be sent. A
    mistake there never stops a pass.
    """
    if not _wanted(environment):
        return NOTHING
    protocol = next((environment[name] for name in PROTOCOLS if environment.get(name)), PROTOCOL)
    if protocol != PROTOCOL:
        warn(f"nothing is traced: the protocol {protocol!r} is not supported, set {PROTOCOLS[1]}={PROTOCOL}")
        return NOTHING
    try:
        from jobs.runtime.otel import OtelTracing, exporter
    except ImportError:
        warn("nothing is traced: install the extra [otel]")
        return NOTHING
    try:
        return OtelTracing(exporter(warn))
    except Exception as error:  # noqa: BLE001 - the variables are read by a library
        # Its text may have a secret in it, such as a header.
        warn(f"nothing is traced: a variable OTEL_… can't be read ({type(error).__name__})")
        return NOTHING


def _wanted(environment: Mapping[str, str]) -> bool:
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return False
    return any(environment.get(name, "").strip() for name in ENDPOINTS)


def _unseen(plan: Plan, outcomes: Sequence[Outcome]) -> None:
    pass
