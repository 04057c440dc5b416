"""Sends metrics to a Prometheus Pushgateway: one request, which replaces what the last one sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import urllib3
from prometheus_client import push_to_gateway
from prometheus_client.registry import Collector

from reconciler.http.bounded import BoundedClient, Bounds
from reconciler.model.errors import GatewayError

JOB = "node-maintenance"
"""The value of the label `job`."""

TOTAL = 10.0
"""Seconds for the whole request with its answer."""

_SIZE = 1 << 16


def push(url: str, metrics: Collector) -> None:
    """Send the metrics to the gateway at this URL, which has no path; raises GatewayError."""
    client = BoundedClient("pushgateway")

    def handler(
        url: str, method: str, timeout: float | None, headers: Sequence[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        def send() -> None:
            answer = client.send(method, url, Bounds(TOTAL, _SIZE), body=data, headers=dict(headers))
            if answer.status >= 300:
                said = " ".join(answer.data.decode("utf-8", "replace").split())[:200]
                raise GatewayError(f"the gateway answered {answer.status}: {said}")

        return send

    try:
        push_to_gateway(url, JOB, metrics, timeout=TOTAL, handler=handler)
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise GatewayError(f"no answer of the gateway: {' '.join(str(error).split())[:300]}") from error
    finally:
        client.close()
