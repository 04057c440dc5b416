"""Which pods the drains of the coming night move, as a document and as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.features.pods.coming import ComingPod, coming, end_of_night
from reconciler.model.explanation import Examination, Moves, PodMove
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.model.values import encoded
from reconciler.passes.assess import assess
from reconciler.profiles.orders import why_drained
from reconciler.report.explain import order_events
from reconciler.report.moves import answer_words, counts
from reconciler.report.of_namespace import by_need, check_pods_seen, moves_on
from reconciler.report.text import shown
from reconciler.report.values import Document, head, plain, unseen_lines
from reconciler.settings.schema import Settings

CLUSTER = "the nodes and pods of the cluster"
"""Where a report is read from, in words."""

_ROWS = 100
"""Pods in a text; the JSON output has all of them."""


class TonightReport(Struct, frozen=True):
    """The pods of a namespace (None: of all) whose nodes are drained between `at` and `until` (UTC).

    Drains that have begun count. `undated` pods are on nodes with maintenance for which no start is known.
    `left_out` more are not here, because there are too many. `source` says where that was read. `unseen` are
    sentences about what could not be read.
    """

    namespace: str | None
    at: datetime
    until: datetime
    pods: tuple[ComingPod, ...]
    undated: int = 0
    left_out: int = 0
    source: str = CLUSTER
    unseen: tuple[str, ...] = ()

    @property
    def document(self) -> Document:
        """The report as plain values."""
        return {
            **head(self.at),
            **plain({"until": self.until, "namespace": self.namespace}),
            "source": self.source,
            "pods": [encoded(pod) for pod in self.pods],
            "undated": self.undated,
            "leftOut": self.left_out,
        }


def tonight(examination: Examination, namespace: str | None, settings: Settings) -> TonightReport:
    """Return which pods of a namespace (None: of all) are on nodes that are drained in the coming night.

    The examination has a preview, and the pods of the cluster or of the namespace. Raises Forbidden if they
    could not be read.
    """
    check_pods_seen(examination, namespace)
    plan, snapshot = examination.plan, examination.snapshot
    until, events = end_of_night(plan.now, settings.time_zone), assess(snapshot, plan.now)
    planned = {node.node: node for node in plan.nodes}
    moves: list[tuple[PodMove, str]] = []
    undated = 0
    for node in snapshot.nodes:
        here = [
            pod
            for pod in snapshot.pods.get(node.name, ())
            if namespace in (None, pod.namespace) and not pod.finished
        ]
        of_node = planned.get(node.name)
        if of_node is None or not here:
            continue
        begins = of_node.schedule.planned_start if of_node.schedule is not None else None
        if begins is not None and begins > until:
            continue
        why = why_drained(order_events(of_node)[0])
        for move in moves_on(node, here, examination, events, settings):
            if move.start is not None:
                moves.append((move, why))
            elif move.answer is not Moves.STAYS:
                undated += 1
    moves.sort(key=lambda pair: by_need(pair[0]))
    pods = tuple(coming(move, why) for move, why in moves)
    return TonightReport(namespace, plan.now, until, pods, undated, unseen=tuple(unseen_lines(plan.unseen)))


def as_text(report: TonightReport, zone: ZoneInfo, width: int | None = None) -> str:
    """Return the report as text in this zone; `width` None folds no line."""
    return shown(_lines(report), zone, width, near=report.at)


def _lines(report: TonightReport) -> Iterator[str]:
    of = f" of {report.namespace}" if report.namespace is not None else ""
    until = to_text(report.until)
    if report.pods:
        yield f"pods{of} on nodes that are drained until {until}: {counts(pod.answer for pod in report.pods)}"
    else:
        yield f"until {until} no node is drained that runs a pod{of}"
    if report.undated:
        are, plan = count_of(report.undated, "pod", "are"), "reconciler plan"
        plan += f" -n {report.namespace}" if report.namespace is not None else ""
        yield f"{are} on nodes with maintenance for which no start is known: `{plan}`"
    yield from report.unseen
    rows = report.pods[:_ROWS]
    if rows:
        yield ""
    for pod in rows:
        name = pod.pod.partition("/")[2] if report.namespace is not None else pod.pod
        owner, why = f" ({pod.owner})" if pod.owner else "", f": {pod.why}" if pod.why else ""
        begins = to_text(pod.start) if pod.start is not None else "now"
        said = (f"{begins} {name}{owner} on {pod.node}{why}", answer_words(pod.answer, pod.because), pod.who)
        yield "; ".join(filter(None, said))
    hidden = len(report.pods) + report.left_out - len(rows)
    if hidden:
        yield f"and {hidden:,} more, which come later; --output json has {len(report.pods):,}"
