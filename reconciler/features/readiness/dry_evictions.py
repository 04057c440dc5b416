"""Asks admission webhooks whether they refuse evictions, by evictions that the API server only rehearses.

The API server calls the webhooks of an eviction before it looks at PodDisruptionBudgets, so an answer about a
budget means that no webhook refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from reconciler.drain.refusal import read_denial
from reconciler.features.readiness.findings import WebhookAnswers, WebhookRefusal
from reconciler.kubernetes.connection import Connection, Request
from reconciler.kubernetes.eviction import eviction, place_of
from reconciler.model.errors import ClusterError, Forbidden, Unauthorized, Unreachable
from reconciler.model.pod import Pod

MOST = 500
"""Evictions that are rehearsed at most."""

LONGEST = 60.0
"""Seconds for all of them."""

ONE = 31.0
"""Seconds for one: a webhook may take 30."""

SILENT = 3
"""Evictions without an answer after which no more are rehearsed."""


class _Counts(Struct):
    asked: int = 0
    silent: int = 0
    refusals: list[WebhookRefusal] = field(default_factory=list)
    denied: dict[str, ClusterError] = field(default_factory=dict)
    skipped: int = 0


def ask_webhooks(
    connection: Connection,
    pods: Sequence[Pod],
    *,
    most: int = MOST,
    seconds: float = LONGEST,
    clock: Callable[[], float] = time.monotonic,
) -> WebhookAnswers:
    """Rehearse the eviction of these pods, one after another, until one of the limits is reached.

    One at a time, so that no two answers are about the same budget. Nothing is evicted and no budget is used:
    the request and its options say `dryRun: All`, and the server passes this on to the webhooks. Pods of a
    namespace in which we may not evict are left out after the first. Raises Unauthorized if the server
    refuses our identity.
    """
    counts = _Counts()
    ends = clock() + seconds
    for pod in pods:
        left = ends - clock()
        if left <= 0 or counts.asked >= most or counts.silent >= SILENT:
            break
        if pod.namespace in counts.denied:
            counts.skipped += 1
            continue
        counts.asked += 1
        seconds_for_one = min(left, ONE)
        rehearsal = Request(
            "POST",
            place_of(pod) / "eviction",
            query={"dryRun": "All"},
            body=eviction(pod, {"preconditions": {"uid": pod.uid}, "dryRun": ["All"]}),
            read_timeout=seconds_for_one,
            total=seconds_for_one,
        )
        try:
            connection.send(rehearsal)
        except Unauthorized:
            raise
        except ClusterError as error:
            denial = read_denial(str(error))
            if denial is not None:
                counts.refusals.append(
                    WebhookRefusal(pod.namespace, pod.name, denial.by, denial.words, denial.reached)
                )
            elif isinstance(error, Unreachable):
                counts.silent += 1
            elif isinstance(error, Forbidden) and error.reason == "Forbidden":
                # A webhook or a policy names itself, and a namespace that is being deleted has a reason of
                # its own.
                counts.denied.setdefault(pod.namespace, error)
    needs = next((error.needs for error in counts.denied.values()), "")
    return WebhookAnswers(
        asked=counts.asked,
        left=len(pods) - counts.asked - counts.skipped,
        silent=counts.silent,
        refusals=tuple(counts.refusals),
        # Of several namespaces, none is named.
        needs=needs if len(counts.denied) <= 1 else needs.partition(" in ")[0],
        because=next(map(str, counts.denied.values()), ""),
    )
