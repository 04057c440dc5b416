"""The report of a pass: what people and programs read of it.

The keys of its document only grow; `docs/output.md` has a heading for each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from enum import StrEnum

from msgspec import Struct

from reconciler.model.drains import Phase
from reconciler.model.errors import NotFound
from reconciler.model.explanation import NamespacePods
from reconciler.model.holds import INTERNAL, NOT_CLAIMED
from reconciler.model.node import Node
from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodePlan, Plan, ProfileNodes
from reconciler.model.problems import internal
from reconciler.model.record import State
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.report import safe
from reconciler.report.acting import By, carried_out, reconciler_value
from reconciler.report.columns import NodeReport
from reconciler.report.standing import Standing, words_for
from reconciler.report.values import Document, head, keys, plain, settings_value


class Filter(Struct, frozen=True):
    """Which rows are shown: `shown` of `of`. `quiet` are the named nodes that have none."""

    nodes: tuple[str, ...]
    selector: str
    namespace: str
    only: str
    shown: int
    of: int
    quiet: tuple[str, ...]


class Report(Struct, frozen=True):
    """The report of one pass; `rehearsed` says that nothing was written."""

    plan: Plan
    nodes: tuple[NodeReport, ...]
    rehearsed: bool
    outcomes: tuple[Outcome, ...] = ()
    filter: Filter | None = None
    pods: NamespacePods | None = None

    @property
    def by(self) -> By:
        """Who carries out the plan."""
        return carried_out(self.plan, rehearsed=self.rehearsed)

    @property
    def document(self) -> Document:
        """The report as plain values."""
        # It loads the checks and the settings, which a drain by hand does not need.
        from reconciler.report.people import people

        plan = self.plan
        holders = [{"node": node, "because": because} for node, because in plan.budget.holders]
        return {
            **heading(plan),
            "dryRun": self.rehearsed,
            "lookedAfter": plan.managed,
            "budget": {"places": plan.budget.limit, "taken": len(holders), "holders": holders},
            "profiles": plain(plan.profiles),
            "notes": plain(plan.notes),
            "unseen": plain(plan.unseen),
            "people": plain(people(plan, self.outcomes)),
            "nextChange": plain(plan.next_change),
            "filter": plain(self.filter),
            "pods": plain(self.pods and self.pods.moves),
            "nodes": [node.document for node in self.nodes],
            "outcomes": plain(self.outcomes),
        }


keys(ProfileNodes, "profile state? count")
keys(Filter, "nodes selector? namespace? only? shown of quiet")


def heading(plan: Plan) -> Document:
    """Return the first keys of a document about a plan."""
    return {
        **head(plan.now),
        "reconciler": reconciler_value(plan.reconciler),
        "mode": plan.mode,
        "settings": settings_value(plan.settings.version, plan.now),
        "timeZone": plan.settings.time_zone,
    }


def to_report(plan: Plan, outcomes: Iterable[Outcome] = (), *, rehearsed: bool) -> Report:
    """Return the report of one pass, what is missed first; `rehearsed` says that nothing was written."""
    missed = (Standing.WILL_BE_MISSED, Standing.MISSED)
    nodes = sorted(map(node_report, plan.nodes), key=lambda node: node.standing not in missed)
    return Report(plan, tuple(nodes), rehearsed, tuple(outcomes))


def node_report(node: NodePlan) -> NodeReport:
    """Return a node's report; one that can't be shown has only its name, its state, and the hold."""
    try:
        report = NodeReport.of(node)
        _ = report.document
    except Exception as error:  # noqa: BLE001 - one node's data harms that node's row only
        problem = internal(f"node {node.node} can't be reported", error)
        reason = f"an error in this program, see its log; the rest of the node can't be shown: {problem}"
        hold = INTERNAL.on(node.node, reason)
        return NodeReport.of(NodePlan(node.node, "", "", node.before, node.after, holds=(hold,)))
    return report


def as_json(document: Document) -> str:
    """Return the document as indented JSON with a line's end."""
    return safe.json_text(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


class Only(StrEnum):
    """Which nodes a report is limited to, by what happens to them."""

    MISSED = "missed"
    """It was missed, or will be."""

    UNGUARDED = "unguarded"
    BLOCKED = "blocked"
    """By a pod, a PodDisruptionBudget, a webhook, or something else that somebody has to repair."""

    HELD = "held"
    """By a person."""

    WAITS = "waits"
    """For a time or a place."""

    PLANNED = "planned"
    """An event requires a drain, and no drain has begun."""

    DRAINING = "draining"
    DRAINED = "drained"


class Limit(Struct, frozen=True):
    """Which rows of a report to show: those of these nodes (none: of all), and only those of this kind.

    `selector` chooses nodes by their labels, and `selected` are the names of those that have them. `pods` are
    those of a namespace: only nodes that run them are shown.
    """

    names: tuple[str, ...] = ()
    only: Only | None = None
    selector: LabelSelector | None = None
    selected: frozenset[str] = frozenset()
    pods: NamespacePods | None = None

    def on(self, nodes: Iterable[Node]) -> Limit:
        """Return the limit with the names of the nodes that it selects; NotFound if there are none."""
        if self.selector is None:
            return self
        selected = frozenset(node.name for node in nodes if self.selector.matches(node.labels))
        if not selected:
            raise NotFound(f"no node matches {self.selector}", status=404)
        return replace(self, selected=selected)


def limited(report: Report, limit: Limit) -> Report:
    """Return the report with these rows only; everything else in it stays that of the whole fleet.

    Its `filter` says which rows, and how many there are. A node of the limit that has no row in the plan has
    nothing to report.
    """
    if limit == Limit():
        return report
    names = tuple(dict.fromkeys(limit.names))
    known = {node.node for node in report.plan.nodes}
    shown = {node.node for node in report.plan.nodes if _is_shown(node, limit)}
    rows = tuple(node for node in report.nodes if node.name in shown)
    chosen = Filter(
        names,
        str(limit.selector) if limit.selector else "",
        limit.pods.namespace if limit.pods is not None else "",
        limit.only.value if limit.only else "",
        len(rows),
        len(report.nodes),
        tuple(name for name in names if name not in known),
    )
    return replace(report, filter=chosen, nodes=rows, pods=limit.pods)


def _is_shown(node: NodePlan, limit: Limit) -> bool:
    names: Collection[str] = limit.names
    if names and node.node not in names:
        return False
    if limit.selector is not None and node.node not in limit.selected:
        return False
    if limit.pods is not None and node.node not in limit.pods.nodes:
        return False
    match limit.only:
        case None:
            return True
        case Only.PLANNED:
            return node.status.urgency is not None and node.before is not State.IN_MAINTENANCE
        case Only.DRAINING:
            progress = node.draining.progress
            if progress is not None and progress.phase is Phase.RUNNING:
                return True
            # A person drains the node with `reconciler drain`, which has no record.
            if any(hold.code == NOT_CLAIMED.code for hold in node.holds):
                return True
            drain = node.record.drain if node.record is not None else None
            return node.before is State.IN_MAINTENANCE and drain is not None and drain.done is None
    return limit.only in words_for(node)


def summed(before: Report, last: Report) -> Report:
    """Return the report of the last pass, with what earlier passes of the same command did.

    A node has its actions and transitions of all passes, in order and each once, and the state before the
    first of them. A node that only an earlier pass acted on stays in the report; what held it then no longer
    counts. Outcomes are not summed here: the command passes those of all passes to the last report.
    """
    earlier = {node.name: node for node in before.nodes}
    now = {node.name for node in last.nodes}
    nodes = [_joined(earlier[node.name], node) if node.name in earlier else node for node in last.nodes]
    past = [_past(node) for name, node in earlier.items() if name not in now and _happened(node)]
    return replace(last, nodes=(*nodes, *past))


def _happened(node: NodeReport) -> bool:
    return bool(node.actions or node.plan.transitions)


def _joined(before: NodeReport, last: NodeReport) -> NodeReport:
    if not _happened(before):
        return last
    known = [plain(step) for step in before.plan.transitions]
    steps = (*before.plan.transitions, *(step for step in last.plan.transitions if plain(step) not in known))
    return replace(
        last,
        plan=replace(last.plan, before=before.plan.before, transitions=steps),
        # A case that an earlier pass closed keeps what became of it.
        outcome=last.outcome or before.outcome,
        actions=(*before.actions, *(kind for kind in last.actions if kind not in before.actions)),
    )


def _past(node: NodeReport) -> NodeReport:
    return replace(
        node, plan=replace(node.plan, holds=(), status=replace(node.plan.status, unread=()), checks=())
    )
