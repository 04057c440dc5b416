"""The top of the page: what is wrong, what happens next, and who must do something."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from msgspec import Struct

from reconciler.calendar.values import format_duration
from reconciler.features.page.facts import AHEAD, PageFacts
from reconciler.model.outcome import HoldCode
from reconciler.model.plan import NodePlan
from reconciler.model.schedule import CaseForecast
from reconciler.report.acting import acting_line
from reconciler.report.ahead import PlannedCase, Status, moment_text, plan_ahead
from reconciler.report.text import outcome_lines
from reconciler.report.values import unseen_line

_MOST = 6
"""Entries of one list."""

_NAMES = 3
"""Nodes that an entry names."""

_REASONS = 3
"""Reasons of one code that have an entry of their own."""

_LAST = (True, datetime.max.replace(tzinfo=UTC))

_ON_MOST_NODES = "conditionOnFewNodes"

_STAYS = "its drain has not ended"

_NODE = "NODE"
"""Stands for the name in a command for several nodes."""


class Names(Struct, frozen=True):
    """The first nodes that an entry is about, and how many more there are."""

    first: tuple[str, ...] = ()
    more: int = 0


class Entry(Struct, frozen=True):
    """One sentence, and the nodes or the thing that it is about.

    `at` is the moment of what comes next, for people, and `wait` how long it is until then. `who` is the
    person whom it waits for. `about` is the time that is left, if it can't wait.
    """

    nodes: Names
    text: str
    about: str = ""
    at: str = ""
    wait: str = ""
    who: str = ""


class Listed(Struct, frozen=True):
    """The first entries of a list, and how many more there are."""

    entries: tuple[Entry, ...]
    more: int = 0

    @property
    def count(self) -> int:
        """How many entries there are in all."""
        return len(self.entries) + self.more


def wrong(facts: PageFacts) -> Listed:
    """Return what is wrong, the worst first."""
    return _listed(
        [
            *_nobody_acts(facts),
            *_pressing(facts),
            *(Entry(Names(), text, "this process") for text in facts.trouble),
            *_missed(facts),
            *(Entry(Names(), text) for text in outcome_lines(facts.outcomes)),
            *_broken(facts),
            *(Entry(Names(), unseen_line(unseen), "could not see") for unseen in facts.plan.unseen),
            *_unread(facts),
        ]
    )


def _nobody_acts(facts: PageFacts) -> Iterator[Entry]:
    line = acting_line(facts.plan.reconciler, facts.plan.now)
    if line.alarm:
        yield Entry(Names(), line.text)


def unstarted(facts: PageFacts) -> Listed:
    """Return what would have started in mode Enforce, the worst first; empty in every mode but Observe."""
    grouped: dict[tuple[int, str], list[str]] = {}
    for node in facts.plan.nodes:
        schedule = node.schedule
        if schedule is None or not schedule.observed or (schedule.started and not node.drain_begins):
            continue
        asked = [judged.event for judged in node.events if judged.asks]
        kinds = ", ".join(dict.fromkeys(event.condition or event.kind.value for event in asked))
        dates = [event.not_before for event in asked if event.not_before is not None]
        if any(event.started for event in asked):
            key = (0, f"the platform has started {kinds}, and no drain has begun")
        elif any(date <= facts.plan.now for date in dates):
            key = (1, f"the platform may have started {kinds}, and no drain has begun")
        elif node.drain_begins:
            key = (2, f"a drain would start now, for {kinds}")
        else:
            continue
        grouped.setdefault(key, []).append(node.node)
    return _listed([Entry(_some(names), text) for (_, text), names in sorted(grouped.items())])


def next_steps(facts: PageFacts) -> Listed:
    """Return what the plan has next, the earliest first. What happens to nodes at once has one entry."""
    plan = facts.plan
    ahead = plan_ahead(plan, plan.labels, facts.calendar, plan.now + AHEAD)
    steps: dict[tuple[datetime, str], list[str]] = {}
    for case in (*ahead.cases, *ahead.later):
        for at, text in _steps(case):
            if plan.now <= at <= plan.now + AHEAD:
                steps.setdefault((at, text), []).append(case.node)
    return _listed(
        [
            Entry(
                _some(sorted(nodes)),
                text,
                at=moment_text(at, plan.now, facts.zone),
                wait="now" if at <= plan.now else f"in {_rounded(at - plan.now)}",
            )
            for (at, text), nodes in sorted(steps.items())
        ]
    )


def openness(facts: PageFacts) -> str:
    """Return whether a drain may start now, and when that changes."""
    return facts.calendar.at(facts.plan.now, None).because


def asks(facts: PageFacts) -> Listed:
    """Return what waits for a person: first what can't wait, then in the order of the nodes.

    The same reason has one entry. Of one code, the reasons after the first few share an entry.
    """
    grouped: dict[tuple[str, str], dict[str, list[str]]] = {}
    soonest: dict[tuple[str, str, str], NodePlan] = {}
    for node in sorted(facts.plan.nodes, key=lambda node: _press_key(facts, node)):
        for obstacle in facts.obstacles.get(node.node, ()):
            if not obstacle.by_itself:
                code, who = obstacle.code, _for_any(node.node, obstacle.who)
                reason = _for_any(node.node, obstacle.because)
                names = grouped.setdefault((code, who), {}).setdefault(reason, [])
                if node.node not in names:
                    names.append(node.node)
                if facts.presses(node):
                    soonest.setdefault((code, who, reason), node)
    entries: list[tuple[NodePlan | None, Entry]] = []
    for (code, who), waiting in grouped.items():
        pressing = [reason for reason in waiting if (code, who, reason) in soonest]
        often = sorted(
            (reason for reason in waiting if reason not in pressing), key=lambda reason: -len(waiting[reason])
        )
        ordered = [*pressing, *often]
        shared = ordered if len(ordered) == 1 else ordered[_REASONS:]
        for reasons in (*([one] for one in ordered[: -len(shared) or None]), shared):
            if reasons:
                first = soonest.get((code, who, reasons[0]))
                names = list(dict.fromkeys(name for reason in reasons for name in waiting[reason]))
                more = f", and {len(reasons) - 1} other reasons" if len(reasons) > 1 else ""
                text = f"{_for_all(names, reasons[0])}{more}"
                left = _left(facts, first) if first is not None else ""
                entries.append((first, Entry(_some(names), text, left, who=_for_all(names, who))))
    entries.sort(key=lambda entry: _press_key(facts, entry[0]) if entry[0] is not None else _LAST)
    return _listed([entry for _, entry in entries])


def _press_key(facts: PageFacts, node: NodePlan) -> tuple[bool, datetime]:
    """Return the sort key of a node: what can't wait first, by its date; the rest keeps its order."""
    presses = facts.presses(node)
    return not presses, (node.platform_time or facts.plan.now) if presses else facts.plan.now


def _left(facts: PageFacts, node: NodePlan) -> str:
    """Return how much time there is to drain a node that can't wait."""
    now, date = facts.plan.now, node.platform_time
    if any(judged.event.started for judged in node.events if judged.asks):
        return "the platform has started"
    if date is None:
        return "no time left"
    return f"{_rounded(date - now)} left" if date > now else "the platform may start now"


def _pressing(facts: PageFacts) -> Iterator[Entry]:
    """Yield what blocks nodes that can't wait, the soonest first, with the time that is left."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for node in sorted(filter(facts.presses, facts.plan.nodes), key=lambda node: _press_key(facts, node)):
        schedule = node.schedule
        asked = (
            obstacle.because for obstacle in facts.obstacles.get(node.node, ()) if not obstacle.by_itself
        )
        because = next(asked, _STAYS)
        if schedule is not None and schedule.missed:
            because = f"{schedule.forecast}: {schedule.forecast_words}"
        grouped.setdefault((_left(facts, node), _for_any(node.node, because)), []).append(node.node)
    for (left, because), names in grouped.items():
        yield Entry(_some(names), _for_all(names, because), left)


def _for_any(node: str, text: str) -> str:
    """Return the text without the name of its node, so that nodes have the same one."""
    parts = text.split(node)
    result = parts[0]
    for before, after in pairwise(parts):
        alone = not (_in_name(before[-1:]) or _in_name(after[:1]))
        result += (_NODE if alone else node) + after
    return result


def _in_name(character: str) -> bool:
    """Whether a name goes on with this character; an empty text is the end of a text."""
    return character.isalnum() or character in ("-", ".")


def _for_all(nodes: list[str], text: str) -> str:
    """Return such a text for these nodes: with the name if there is one node only."""
    return text.replace(_NODE, nodes[0]) if len(nodes) == 1 else text


def _missed(facts: PageFacts) -> Iterator[Entry]:
    for node in facts.plan.nodes:
        if node.outcome is not None and not node.outcome.result.good:
            yield Entry(_some([node.node]), node.outcome.words)
    for case in facts.recent():
        if not case.outcome.good:
            yield Entry(_some([case.place.node]), f"{case.kind}: {case.why}" if case.kind else case.why)
    for forecast in (CaseForecast.WILL_BE_MISSED, CaseForecast.AT_RISK, CaseForecast.UNKNOWN):
        grouped: dict[str, list[str]] = {}
        for node in facts.plan.nodes:
            schedule = node.schedule
            if schedule is None or (schedule.missed and facts.presses(node)):
                continue
            if schedule.forecast is forecast:
                grouped.setdefault(_for_any(node.node, schedule.forecast_words), []).append(node.node)
        for because, names in grouped.items():
            # In mode Observe nothing starts, so nothing is missed either.
            words = str(forecast).replace("will", "would") if facts.observes else forecast
            yield Entry(_some(names), f"{words}: {_for_all(names, because)}")


def _broken(facts: PageFacts) -> Iterator[Entry]:
    common: dict[str, list[str]] = {}
    for node in facts.plan.nodes:
        for hold in node.holds:
            if hold.code == HoldCode.INTERNAL:
                yield Entry(_some([node.node]), hold.reason)
            elif hold.code == _ON_MOST_NODES:
                common.setdefault(hold.reason, []).append(node.node)
    for because, names in common.items():
        yield Entry(_some(names), because)


def _unread(facts: PageFacts) -> Iterator[Entry]:
    """Yield the sources that can't be read; nodes with the same reason share an entry."""
    grouped: dict[str, list[str]] = {}
    for node in facts.plan.nodes:
        for reason in node.unknowns:
            grouped.setdefault(reason, []).append(node.node)
    for reason, names in sorted(grouped.items(), key=lambda pair: -len(pair[1])):
        yield Entry(_some(names), f"{reason}: whether it has maintenance is not known")


def _steps(case: PlannedCase) -> Iterator[tuple[datetime, str]]:
    schedule = case.schedule
    kinds = ", ".join(case.kinds) or "maintenance"
    late = schedule.missed and not schedule.by_pods
    if schedule.planned_start is not None and not (case.begun or late):
        starts = "a drain would start" if schedule.observed else "the drain starts"
        yield schedule.planned_start, f"{starts}, for {kinds}"
    if case.status is not Status.REPORTED and case.not_before is not None:
        yield case.not_before, f"the platform may start: {kinds}"
    if schedule.ends is not None and case.begun:
        yield schedule.ends, "expected back"


def _listed(entries: list[Entry]) -> Listed:
    return Listed(tuple(entries[:_MOST]), max(len(entries) - _MOST, 0))


def _some(names: list[str]) -> Names:
    return Names(tuple(names[:_NAMES]), max(len(names) - _NAMES, 0))


def _rounded(length: timedelta) -> str:
    """Return a duration in whole minutes, or in hours if it is long."""
    unit = timedelta(hours=1) if length >= timedelta(days=1) else timedelta(minutes=1)
    return "less than 1m" if length < timedelta(minutes=1) else format_duration(length // unit * unit)
