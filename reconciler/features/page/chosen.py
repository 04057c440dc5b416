"""The filter of the page: which nodes it shows, as its address says."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from urllib.parse import parse_qs, urlencode

from msgspec import Struct

from reconciler.features.page.facts import MEANINGS, PageFacts, cells
from reconciler.model.ended_case import EndedCase
from reconciler.model.findings import FindingRow
from reconciler.model.plan import NodePlan
from reconciler.model.values import replace

_LONGEST = 100
"""Characters of one value."""


class PageFilter(Struct, frozen=True):
    """What a reader wants to see; empty values choose all nodes.

    `state` is the name of a kind of square on the map. `namespace` is that of pods that keep a drain, or
    would. `text` is a part of a name, or of what is said of a node, in any case.
    """

    pool: str = ""
    namespace: str = ""
    state: str = ""
    text: str = ""

    @property
    def any(self) -> bool:
        """Whether it leaves anything out."""
        return self != ALL

    @property
    def query(self) -> str:
        """The query of an address with this filter, empty without one."""
        values = {"pool": self.pool, "namespace": self.namespace, "state": self.state, "q": self.text}
        return urlencode({key: value for key, value in values.items() if value})

    @property
    def words(self) -> str:
        """The filter for people, empty without one."""
        said = {"pool": self.pool, "namespace": self.namespace, "state": self.state, "text": self.text}
        return ", ".join(f"{key} {value}" for key, value in said.items() if value)

    def nodes(self, facts: PageFacts) -> frozenset[str] | None:
        """Return the names of the nodes that it chooses, also of some that are gone; None: all."""
        if not self.any:
            return None
        plans = {node.node: node for node in facts.plan.nodes}
        places = {case.place.node: (case.place.pool, case.place.zone) for case in facts.history.ended}
        places |= {node.node: (node.pool, node.zone) for node in facts.plan.nodes}
        places |= {node.node: (node.pool, node.zone) for node in facts.plan.fleet}
        states = cells(facts) if self.state else {}
        ended: dict[str, list[EndedCase]] = {}
        for case in facts.history.ended if self.text else ():
            ended.setdefault(case.place.node, []).append(case)
        text = self.text.casefold()

        def chosen(node: str, pool: str, zone: str) -> bool:
            plan = plans.get(node)
            if self.pool and pool != self.pool:
                return False
            if self.state and (node not in states or states[node].value != self.state):
                return False
            if self.namespace and (plan is None or self.namespace not in _namespaces(plan)):
                return False
            if not text:
                return True
            words = (node, pool, zone, *_words(plan, facts), *(case.why for case in ended.get(node, ())))
            return any(text in word.casefold() for word in words)

        return frozenset(node for node, (pool, zone) in places.items() if chosen(node, pool, zone))

    def finding(self, row: FindingRow) -> bool:
        """Whether it chooses a finding of the readiness: its workload begins with the namespace."""
        if self.namespace and not row.title.startswith(f"{self.namespace}/"):
            return False
        words = (row.title, row.place, row.because)
        return not self.text or any(self.text.casefold() in word.casefold() for word in words)


ALL = PageFilter()
"""No filter."""


def chosen_by(query: str) -> PageFilter:
    """Return the filter of an address; what is no filter is ignored."""
    try:
        values = parse_qs(query, max_num_fields=20)
    except ValueError:
        return ALL
    first = {key: values.get(key, [""])[0].strip()[:_LONGEST] for key in ("pool", "namespace", "state", "q")}
    return PageFilter(first["pool"], first["namespace"], first["state"], first["q"])


def only(facts: PageFacts, names: Collection[str] | None) -> PageFacts:
    """Return the facts about these nodes."""
    if names is None:
        return facts
    plan = replace(
        facts.plan,
        nodes=tuple(node for node in facts.plan.nodes if node.node in names),
        fleet=tuple(node for node in facts.plan.fleet if node.node in names),
    )
    ended = tuple(case for case in facts.history.ended if case.place.node in names)
    return replace(facts, plan=plan, history=replace(facts.history, ended=ended))


STATES = tuple((cell.value, meaning) for cell, meaning in MEANINGS.items())
"""The values of `state`, and what each means."""


def _namespaces(plan: NodePlan) -> frozenset[str]:
    """Return the namespaces of the pods that keep the drain of a node, or would."""
    progress, preview, schedule = plan.draining.progress, plan.draining.preview, plan.schedule
    pods: list[str] = []
    if progress is not None:
        pods += [blocker.pod for blocker in (*progress.blockers, *progress.kept)]
        pods += [f"{coming.namespace}/" for coming in progress.coming]
    if preview is not None:
        pods += [pod.pod for pod in preview.pods] + [blocker.pod for blocker in preview.blockers]
    if schedule is not None:
        pods += [obstacle.pod for obstacle in schedule.prospect.obstacles]
    drain = plan.record.drain if plan.record is not None else None
    if drain is not None:
        pods += [*drain.kept.names, *(f"{coming.namespace}/" for coming in drain.kept.coming)]
    return frozenset(pod.partition("/")[0] for pod in pods)


def _words(plan: NodePlan | None, facts: PageFacts) -> Iterator[str]:
    """Yield what the page says of a node."""
    if plan is None:
        return
    for event in plan.events:
        yield event.event.condition or event.event.kind.value
        yield event.event.cause.description
    for obstacle in facts.obstacles.get(plan.node, ()):
        yield obstacle.because
        yield obstacle.who
    if plan.schedule is not None:
        yield plan.schedule.because
        yield plan.schedule.forecast_words
    yield from plan.unknowns
