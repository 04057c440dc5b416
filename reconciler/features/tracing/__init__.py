"""Traces of passes, drains and requests with OpenTelemetry."""
