"""The top of the page: what is wrong, what happens next, and who must do something."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from reconciler.calendar.values import rounded
from reconciler.features.page.facts import AHEAD, PageFacts
from reconciler.model.holds import INTERNAL
from reconciler.model.plan import NodePlan
from reconciler.model.schedule import CaseForecast
from reconciler.model.values import replace
from reconciler.report.acting import acting_line
from reconciler.report.ahead import Status, moment_text
from reconciler.report.people import (
    by_cause,
    clocks_disagree,
    for_all,
    on_most,
    people,
    rejected,
    selects_none,
    unguarded,
)
from reconciler.report.values import outcome_lines, unseen_line

_MOST = 6
"""Entries of one list."""

_NAMES = 3
"""Nodes that an entry names."""

SOON = timedelta(minutes=15)
"""What is due so soon is red."""

_LAST = (2, datetime.max.replace(tzinfo=UTC))


_STAYS = "its drain has not ended"


class Names(Struct, frozen=True):
    """The nodes that an entry is about, of which the page names the first ones."""

    every: tuple[str, ...] = ()

    @property
    def first(self) -> tuple[str, ...]:
        """The nodes that are named."""
        return self.every[:_NAMES]

    @property
    def more(self) -> int:
        """How many more there are."""
        return len(self.every) - len(self.first)


class Entry(Struct, frozen=True):
    """One sentence, and the nodes or the thing that it is about.

    `at` is the moment of what comes next, for people, and `wait` how long it is until then. `who` is the
    person whom it waits for. `about` is the time that is left, or what it is about. `red` says that there is
    no time to lose.
    """

    nodes: Names
    text: str
    about: str = ""
    at: str = ""
    wait: str = ""
    who: str = ""
    red: bool = False


class EntryList(Struct, frozen=True):
    """The first entries of a list, how many more there are, and how many are about other nodes only."""

    entries: tuple[Entry, ...]
    more: int = 0
    elsewhere: int = 0

    @property
    def count(self) -> int:
        """How many entries there are of the chosen nodes."""
        return len(self.entries) + self.more

    @property
    def red(self) -> bool:
        """Whether there is no time to lose for one of them."""
        return any(entry.red for entry in self.entries)


def wrong(facts: PageFacts, chosen: Collection[str] | None = None) -> EntryList:
    """Return what is wrong, the worst first. Nodes with the same reason share an entry."""
    plan = facts.plan
    entries = []
    acting = acting_line(plan.reconciler, plan.now)
    if acting.alarm:
        entries.append(Entry(Names(), acting.text))

    # What blocks nodes that can't wait, the soonest first, with the time that is left.
    said = []
    pressing = {node.node: node for node in plan.nodes if facts.presses(node)}
    for node in sorted(pressing.values(), key=lambda node: node.platform_time or plan.now):
        obstacles = facts.obstacles.get(node.node, ())
        because = next((obstacle.because for obstacle in obstacles if not obstacle.by_itself), _STAYS)
        if node.schedule is not None and node.schedule.missed:
            because = f"{node.schedule.forecast}: {node.schedule.forecast_words}"
        said.append((node.node, because))
    for because, names in by_cause(said).items():
        left = _left(facts, pressing[names[0]])
        entries.append(Entry(_some(names), for_all(names, because), left, red=True))

    entries += [Entry(Names(), text, "this process") for text in facts.trouble]
    for text in (rejected(plan), clocks_disagree(plan), selects_none(plan)):
        entries += [Entry(Names(), text)] if text else []

    # Nodes that nobody guards, with the time that is left for the soonest.
    for text, nodes in unguarded(node for node in plan.nodes if not facts.presses(node)).items():
        at, left = _soonest(facts, nodes)
        names = [node.node for node in nodes]
        red = at is not None and at - plan.now <= SOON
        entries.append(Entry(_some(names), for_all(names, f"unguarded, {text}"), left, red=red))

    for node in plan.nodes:
        if node.outcome is not None and not node.outcome.result.good:
            entries.append(Entry(_some([node.node]), node.outcome.words))
    for forecast in (CaseForecast.WILL_BE_MISSED, CaseForecast.AT_RISK, CaseForecast.UNKNOWN):
        said = [
            (node.node, node.schedule.forecast_words)
            for node in plan.nodes
            if node.schedule is not None
            and node.schedule.forecast is forecast
            and not (node.schedule.missed and facts.presses(node))
        ]
        # In mode Observe nothing starts, so nothing is missed either.
        words = str(forecast).replace("will", "would") if facts.observes else forecast
        for because, names in by_cause(said).items():
            entries.append(Entry(_some(names), f"{words}: {for_all(names, because)}"))

    # Drains that a person has stopped; those that will be missed are above.
    said = [
        (node.node, node.schedule.stopped)
        for node in plan.nodes
        if node.schedule is not None and node.schedule.stopped and not node.schedule.missed
    ]
    for because, names in by_cause(said).items():
        entries.append(Entry(_some(names), for_all(names, because)))

    entries += [Entry(Names(), text) for text in outcome_lines(facts.outcomes)]
    for node in plan.nodes:
        broken = [hold.reason for hold in node.holds if hold.code == INTERNAL.code]
        entries += [Entry(_some([node.node]), reason) for reason in broken]
    entries += [Entry(_some(names), because) for because, names in on_most(plan).items()]

    # What can't be read, that of the most nodes first.
    entries += [Entry(Names(), unseen_line(unseen), "could not see") for unseen in plan.unseen]
    said = [(node.node, reason) for node in plan.nodes for reason in node.unknowns]
    for reason, names in sorted(by_cause(said).items(), key=lambda pair: -len(pair[1])):
        entries.append(Entry(_some(names), f"{reason}: whether it has maintenance is not known"))
    return _listed(entries, chosen)


def past_misses(facts: PageFacts, chosen: Collection[str] | None = None) -> EntryList:
    """Return the cases that ended badly in the last day, and how long ago: nothing is to be done for them."""
    return _listed(
        [
            Entry(
                _some([case.place.node]),
                f"{case.kind}: {case.why}" if case.kind else case.why,
                f"{rounded(facts.plan.now - case.times.ended)} ago",
            )
            for case in facts.recent()
            if not case.outcome.good
        ],
        chosen,
    )


def next_steps(facts: PageFacts, chosen: Collection[str] | None = None) -> EntryList:
    """Return what the plan has next, the earliest first. What happens to nodes at once has one entry."""
    plan = facts.plan
    steps: dict[tuple[datetime, str], list[str]] = {}
    for case in (*facts.ahead.cases, *facts.ahead.later):
        schedule, kinds = case.schedule, ", ".join(case.kinds) or "maintenance"
        late = schedule.missed and not schedule.by_pods
        moments = []
        if schedule.planned_start is not None and not (case.begun or late):
            starts = "a drain would start" if schedule.observed else "the drain starts"
            moments.append((schedule.planned_start, f"{starts}, for {kinds}"))
        if case.status is not Status.REPORTED and case.not_before is not None:
            moments.append((case.not_before, f"the platform may start: {kinds}"))
        if schedule.ends is not None and case.begun:
            moments.append((schedule.ends, "expected back"))
        for at, text in moments:
            if plan.now <= at <= plan.now + AHEAD:
                steps.setdefault((at, text), []).append(case.node)
    return _listed(
        [
            Entry(
                _some(sorted(nodes)),
                text,
                at=moment_text(at, plan.now, facts.zone),
                wait="now" if at <= plan.now else f"in {rounded(at - plan.now)}",
            )
            for (at, text), nodes in sorted(steps.items())
        ],
        chosen,
    )


def openness(facts: PageFacts) -> str:
    """Return whether a drain may start now, and when that changes."""
    return facts.calendar.at(facts.plan.now, None).because


def asks(facts: PageFacts, chosen: Collection[str] | None = None) -> EntryList:
    """Return what waits for a person: what can't wait, what is due soon, the rest in the order of the nodes.

    The same reason has one entry. Of one code, the reasons after the first few share an entry.
    """
    now = facts.plan.now
    plans = {node.node: node for node in facts.plan.nodes}
    # What can't wait comes first, by its date.
    first = sorted(filter(facts.presses, facts.plan.nodes), key=lambda node: node.platform_time or now)
    rest = [node for node in facts.plan.nodes if not facts.presses(node)]
    asked = people(
        facts.plan,
        facts.outcomes,
        facts.trouble,
        nodes=[*first, *rest],
        obstacles_of=lambda node: facts.obstacles.get(node.node, ()),
        presses=facts.presses,
    )
    entries: list[tuple[tuple[int, datetime], Entry]] = []
    for ask in asked:
        nodes = [plans[name] for name in ask.nodes]
        pressing = next(filter(facts.presses, nodes), None)
        if pressing is not None:
            key, left = (0, pressing.platform_time or now), _left(facts, pressing)
        else:
            at, left = _soonest(facts, [node for node in nodes if node.unguarded is not None])
            if at is None:
                starts = [node.schedule.latest_start for node in nodes if node.schedule is not None]
                at = min((start for start in starts if start is not None and start > now), default=None)
                left = f"due in {rounded(at - now)}" if at is not None else ""
            key = (1, at) if at is not None and at - now <= SOON else _LAST
        red = key is not _LAST
        entries.append((key, Entry(_some(list(ask.nodes)), ask.because, left, who=ask.who, red=red)))
    entries.sort(key=lambda entry: entry[0])
    return _listed([entry for _, entry in entries], chosen)


def _left(facts: PageFacts, node: NodePlan) -> str:
    """Return how much time there is to drain a node that can't wait."""
    now, date = facts.plan.now, node.platform_time
    if any(judged.event.started for judged in node.events if judged.asks):
        return "the platform has started"
    if date is None:
        return "no time left"
    return f"{rounded(date - now)} left" if date > now else "the platform may start now"


def _soonest(facts: PageFacts, nodes: list[NodePlan]) -> tuple[datetime | None, str]:
    """Return when the platform may start on the first of these nodes, and how much time is left until then.

    One that it has started without a date is due now. Without a date or a start, it is None and empty.
    """
    dated = [
        node
        for node in nodes
        if node.platform_time is not None or any(each.event.started for each in node.events)
    ]
    if not dated:
        return None, ""
    soonest = min(dated, key=lambda node: node.platform_time or facts.plan.now)
    return soonest.platform_time or facts.plan.now, _left(facts, soonest)


def _listed(entries: list[Entry], chosen: Collection[str] | None) -> EntryList:
    """Return the entries about the chosen nodes (None: all), which come first, and those about no node."""
    kept = entries
    if chosen is not None:
        kept = [
            replace(entry, nodes=Names(tuple(sorted(entry.nodes.every, key=lambda name: name not in chosen))))
            for entry in entries
            if not entry.nodes.every or any(name in chosen for name in entry.nodes.every)
        ]
    return EntryList(tuple(kept[:_MOST]), max(len(kept) - _MOST, 0), len(entries) - len(kept))


def _some(names: list[str]) -> Names:
    return Names(tuple(names))
