"""Which pods were moved, as a document and as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.features.pods.moved import MovedPod, to_fields
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.report.text import shown
from reconciler.report.values import Document, head, plain

_ROWS = 100
"""Pods in a text, the newest; the JSON output has all of them."""


class PodsReport(Struct, frozen=True):
    """The pods of a namespace (None: of all) that were moved from `since` to `at` (UTC).

    `source` says where that was read. Before `whole_from` (UTC; None: not known) some may be missing.
    `left_out` older pods are not shown, because there are too many.
    """

    namespace: str | None
    since: datetime
    at: datetime
    source: str
    pods: tuple[MovedPod, ...]
    whole_from: datetime | None = None
    left_out: int = 0

    @property
    def document(self) -> Document:
        """The report as plain values."""
        return {
            **head(self.at),
            **plain({"since": self.since, "wholeFrom": self.whole_from}),
            "namespace": self.namespace,
            "source": self.source,
            "leftOut": self.left_out,
            "pods": [to_fields(pod) for pod in self.pods],
        }


def as_text(report: PodsReport, zone: ZoneInfo, width: int | None = None) -> str:
    """Return the report as text in this zone, the newest pods first; `width` None folds no line."""
    return shown(_lines(report), zone, width, near=report.at)


def _lines(report: PodsReport) -> Iterator[str]:
    of = f" of {report.namespace}" if report.namespace is not None else ""
    since = to_text(report.since)
    count = len(report.pods) + report.left_out
    if count:
        yield f"{count_of(count, 'pod')}{of} {'was' if count == 1 else 'were'} moved since {since}"
    else:
        yield f"no pod{of} was moved since {since}, says {report.source}"
    if report.whole_from is not None and report.whole_from > report.since:
        yield f"{report.source} is complete from {to_text(report.whole_from)} on; the log has what was before"
    rows = report.pods[::-1][:_ROWS]
    if rows:
        yield ""
    for pod in rows:
        name = pod.pod.partition("/")[2] if report.namespace is not None else pod.pod
        owner = f" ({pod.owner})" if pod.owner else ""
        yield f"{to_text(pod.at)} {name}{owner} {how(pod)}"
    hidden = count - len(rows)
    if hidden:
        yield f"and {hidden:,} more, which are older; --output json has {len(report.pods):,}"


def how(pod: MovedPod) -> str:
    """Return what was done to a pod, from which node, why, and what had refused it before."""
    done, why = "deleted" if pod.deleted else "evicted", f": {pod.why}" if pod.why else ""
    refused = [f"{refused.by} had refused it {_times(refused.times)}" for refused in pod.refused]
    return "; ".join([f"{done} from {pod.node}{why}", *refused])


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count) or count_of(count, "time")
