"""Traces what a process does: nothing, unless the environment has an endpoint for traces."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from jobs.runtime.process import Observer, Process

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""The variables that switch tracing on."""

PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
"""The only protocol that is supported."""


def tracing_of(environment: Mapping[str, str], warn: Callable[[str], object]) -> Observer | None:
    """Return what traces, if the environment switches it on by the standard variables of OpenTelemetry.

    `warn` gets why nothing is traced although an endpoint is set, and later once why traces can't be sent. A
    mistake there never stops a pass.
    """
    if not _wanted(environment):
        return None
    protocol = next((environment[name] for name in PROTOCOLS if environment.get(name)), PROTOCOL)
    if protocol != PROTOCOL:
        warn(f"nothing is traced: the protocol {protocol!r} is not supported, set {PROTOCOLS[1]}={PROTOCOL}")
        return None
    try:
        from reconciler.features.tracing.otel import OtelTracing, exporter
    except ImportError:
        warn("nothing is traced: install the extra [otel]")
        return None
    try:
        return OtelTracing(exporter(warn))
    except Exception as error:  # noqa: BLE001 - the variables are read by a library
        # Its text may have a secret in it, such as a header.
        warn(f"nothing is traced: a variable OTEL_… can't be read ({type(error).__name__})")
        return None


def _wanted(environment: Mapping[str, str]) -> bool:
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return False
    return any(environment.get(name, "").strip() for name in ENDPOINTS)


PROCESS = Process(observer=lambda around, _: tracing_of(os.environ, around.warn))
