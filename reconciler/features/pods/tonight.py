"""Which pods the drains of the coming night move, as a document and as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler import __version__
from reconciler.model.explanation import Examination, Moves, PodMove
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.passes.assess import assess
from reconciler.profiles.orders import why_drained
from reconciler.report.explain import order_events, plan_of
from reconciler.report.moves import answer_words, counts
from reconciler.report.of_namespace import by_need, check_pods_seen, moves_on
from reconciler.report.text import shown
from reconciler.report.values import Document, keys, plain, unseen_lines
from reconciler.settings.schema import Settings

MORNING = time(8)
"""When a night ends, in the time zone of the settings."""

_ROWS = 100
"""Pods in a text; the JSON output has all of them."""


class ComingMove(Struct, frozen=True):
    """A pod on a node that is drained in the coming night, and `why` it is: the events, or empty."""

    move: PodMove
    why: str


keys(
    ComingMove,
    "pod=move.pod node=move.node owner=move.owner? start=move.start why answer=move.answer "
    "because=move.because? who=move.who?",
)


class TonightReport(Struct, frozen=True):
    """The pods of a namespace (None: of all) whose nodes are drained between `at` and `until` (UTC).

    Drains that have begun count. `undated` pods are on nodes with maintenance for which no start is known.
    `unseen` are sentences about what could not be read.
    """

    namespace: str | None
    at: datetime
    until: datetime
    pods: tuple[ComingMove, ...]
    undated: int = 0
    unseen: tuple[str, ...] = ()

    @property
    def document(self) -> Document:
        """The report as plain values."""
        return {
            "version": "v1",
            "program": __version__,
            **plain({"at": self.at, "until": self.until, "namespace": self.namespace, "pods": self.pods}),
            "undated": self.undated,
        }


def end_of_night(now: datetime, zone: ZoneInfo) -> datetime:
    """Return the end of the coming night (UTC): the morning of the day after `now` (aware) in the zone."""
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, MORNING, zone).astimezone(UTC)


def tonight(found: Examination, namespace: str | None, settings: Settings) -> TonightReport:
    """Return which pods of a namespace (None: of all) are on nodes that are drained in the coming night.

    The examination has a preview, and the pods of the cluster or of the namespace. Raises Forbidden if they
    could not be read.
    """
    check_pods_seen(found, namespace)
    plan, snapshot = found.plan, found.snapshot
    until, events = end_of_night(plan.now, settings.time_zone), assess(snapshot, plan.now)
    planned = {node.node for node in plan.nodes}
    pods: list[ComingMove] = []
    undated = 0
    for node in snapshot.nodes:
        here = [
            pod
            for pod in snapshot.pods.get(node.name, ())
            if namespace in (None, pod.namespace) and not pod.finished
        ]
        if node.name not in planned or not here:
            continue
        of_node = plan_of(node, plan)
        begins = of_node.schedule.planned_start if of_node.schedule is not None else None
        if begins is not None and begins > until:
            continue
        why = why_drained(order_events(of_node)[0])
        for move in moves_on(node, here, found, events, settings):
            if move.start is not None:
                pods.append(ComingMove(move, why))
            elif move.answer is not Moves.STAYS:
                undated += 1
    pods.sort(key=lambda pod: by_need(pod.move))
    return TonightReport(namespace, plan.now, until, tuple(pods), undated, tuple(unseen_lines(plan.unseen)))


def as_text(report: TonightReport, zone: ZoneInfo, width: int | None = None) -> str:
    """Return the report as text in this zone; `width` None folds no line."""
    return shown(_lines(report), zone, width, near=report.at)


def _lines(report: TonightReport) -> Iterator[str]:
    of = f" of {report.namespace}" if report.namespace is not None else ""
    until = to_text(report.until)
    if report.pods:
        yield f"pods{of} on nodes that are drained until {until}: {counts(pod.move for pod in report.pods)}"
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
        move = pod.move
        name = move.pod.partition("/")[2] if report.namespace is not None else move.pod
        owner, why = f" ({move.owner})" if move.owner else "", f": {pod.why}" if pod.why else ""
        begins = to_text(move.start) if move.start is not None else ""
        yield "; ".join(
            filter(None, (f"{begins} {name}{owner} on {move.node}{why}", answer_words(move), move.who))
        )
    hidden = len(report.pods) - len(rows)
    if hidden:
        yield f"and {hidden:,} more, which come later; --output json has {len(report.pods):,}"
