"""Sends metrics to a Prometheus Pushgateway: one request, which replaces what the last one sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import urllib3
from prometheus_client import push_to_gateway
from prometheus_client.registry import Collector

from reconciler import USER_AGENT
from reconciler.http.bounded import Bounds, bound, within_bounds
from reconciler.model.errors import GatewayError

JOB = "node-maintenance"
"""The value of the label `job`."""

TOTAL = 10.0
"""Seconds for the whole request with its answer."""

_SIZE = 1 << 16


def push(url: str, metrics: Collector) -> None:
    """Send the metrics to the gateway at this URL, which has no path; raises GatewayError."""
    pool = urllib3.PoolManager(retries=False)
    bound(pool, "pushgateway")

    def handler(
        url: str, method: str, timeout: float | None, headers: Sequence[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        def send() -> None:
            with within_bounds(Bounds(TOTAL, _SIZE)):
                answer = pool.request(
                    method,
                    url,
                    body=data,
                    headers={**dict(headers), "User-Agent": USER_AGENT},
                    timeout=urllib3.Timeout(total=timeout),
                    retries=False,
                    redirect=False,
                )
            if answer.status >= 300:
                said = " ".join(answer.data.decode("utf-8", "replace").split())[:200]
                raise GatewayError(f"the gateway answered {answer.status}: {said}")

        return send

    try:
        push_to_gateway(url, JOB, metrics, timeout=TOTAL, handler=handler)
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise GatewayError(f"no answer of the gateway: {' '.join(str(error).split())[:300]}") from error
    finally:
        pool.clear()
