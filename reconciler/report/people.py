"""Who must do something: the people for whom a plan waits, and what each of them can type or change.

There is an entry for all that is wrong, and for each node that nobody guards or that will not be drained in
time. Only what ends by itself in time has none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from itertools import pairwise

from msgspec import Struct

from reconciler.calendar.values import first_moment, with_time_left, without_times
from reconciler.model.explanation import Obstacle
from reconciler.model.holds import SETTINGS
from reconciler.model.keys import keys_of
from reconciler.model.limits import count_of, first_of
from reconciler.model.outcome import Outcome
from reconciler.model.permission_kinds import permission_kinds
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.reconciler import LOG, LOOK
from reconciler.report.acting import acting_line, lost_words
from reconciler.report.explain import obstacles
from reconciler.report.values import keys, outcome_lines, unseen_line

_NODE = "NODE"
"""Stands for the name in a command for several nodes."""

_NEVER = datetime.max.replace(tzinfo=UTC)

_NAMED = 5
"""Nodes that a line names."""

_TYPED = 20
"""Nodes that a command names."""


@cache
def _several() -> re.Pattern[str]:
    """Return what finds commands that take several nodes."""
    permit = (kind.command for kind in permission_kinds().values())
    ours = ("defer", "drain", "hold", "release", "resume", *permit)
    return re.compile(rf"\b(reconciler (?:{'|'.join(ours)})|kubectl (?:cordon|describe node)) NODE\b")


_OF_ONE = re.compile(r"\b(kubectl get pods [^;]*spec\.nodeName=|reconciler explain )NODE\b")
"""Commands that show something of one node."""

_REASONS = 3
"""Reasons of one code that have an entry of their own."""


class Ask(Struct, frozen=True):
    """What a person must do: for these nodes (none: for the whole program), why, who, and how.

    `who` always has a command, or a setting in backticks.
    """

    nodes: tuple[str, ...]
    because: str
    who: str


keys(Ask, "nodes because who")

ObstaclesOf = Callable[[NodePlan], tuple[Obstacle, ...]]


def people(
    plan: Plan,
    outcomes: Iterable[Outcome] = (),
    trouble: Iterable[str] = (),
    *,
    nodes: Iterable[NodePlan] | None = None,
    obstacles_of: ObstaclesOf | None = None,
    presses: Callable[[NodePlan], bool] = lambda _: False,
) -> tuple[Ask, ...]:
    """Return what waits for a person, in the order of the nodes; nodes with the same cause share an entry.

    Of what the same person can end in the same way, the reasons after the first few share an entry, but not
    those of nodes that can't wait (`presses`). `trouble` is what is wrong with the process. `nodes` are those
    of the plan in another order, and `obstacles_of` returns what is known of each: by default, what the plan
    says.
    """
    of = obstacles_of if obstacles_of is not None else partial(obstacles_in, plan)
    grouped: dict[tuple[str, str], list[tuple[str, str]]] = {}
    pressing: set[tuple[str, str, str]] = set()
    for node in plan.nodes if nodes is None else nodes:
        for obstacle in of(node):
            if not obstacle.by_itself:
                key = obstacle.code, for_any(node.node, obstacle.who)
                grouped.setdefault(key, []).append((node.node, obstacle.because))
                if presses(node):
                    pressing.add((*key, node.node))
    asked = [*_of_process(plan, outcomes, trouble)]
    for key, said in grouped.items():
        waiting = by_cause(said)
        first = [
            reason for reason, names in waiting.items() if any((*key, name) in pressing for name in names)
        ]
        often = sorted(
            (reason for reason in waiting if reason not in first), key=lambda reason: -len(waiting[reason])
        )
        ordered = [*first, *often]
        shared = ordered if len(ordered) == 1 else ordered[_REASONS:]
        for reasons in (*([reason] for reason in ordered[: -len(shared) or None]), shared):
            if reasons:
                every = list(dict.fromkeys(name for reason in reasons for name in waiting[reason]))
                more = f", and {len(reasons) - 1} other reasons" if len(reasons) > 1 else ""
                because = f"{for_all(every, reasons[0])}{more}"
                asked.append(Ask(tuple(every), because, to_type(every, key[1])))
    return tuple(asked)


def obstacles_in(plan: Plan, node: NodePlan) -> tuple[Obstacle, ...]:
    """Return the obstacles of a node of the plan."""
    return obstacles(node, keys_of(plan.settings.prefix), plan.budget)


def _of_process(plan: Plan, outcomes: Iterable[Outcome], trouble: Iterable[str]) -> Iterator[Ask]:
    """Yield what is wrong without being about one case."""
    acting = acting_line(plan.reconciler, plan.now)
    if acting.alarm and (plan.reconciler.others or not plan.reconciler.acts):
        yield Ask((), acting.text, f"whoever runs the reconciler: `{LOOK}`")
    elif acting.alarm:
        yield Ask(
            (), lost_words(plan.reconciler), f"{SETTINGS}: `reconciler check-config FILE --context CONTEXT`"
        )
    if plan.settings.rejected:
        yield Ask((), rejected(plan), f"{SETTINGS}: `reconciler check-config FILE` names each mistake")
    if clocks := clocks_disagree(plan):
        yield Ask((), clocks, f"the administrator of the API servers: {CORRECT}")
    for text in trouble:
        yield Ask(
            (), text, f"whoever runs the reconciler: `{LOG}`; for settings, `reconciler check-config FILE`"
        )
    if selects_none(plan):
        who = f"{SETTINGS}: `nodeSelector`; `kubectl get nodes --show-labels` shows the labels"
        yield Ask((), selects_none(plan), who)
    for text in outcome_lines(outcomes):
        yield Ask((), text, f"whoever runs the reconciler, if the next passes fail too: `{LOG}`")
    for unseen in plan.unseen:
        needs = f"kubectl auth can-i {unseen.needs}" if unseen.needs else LOG
        yield Ask((), f"could not see {unseen_line(unseen)}", f"the administrator of the cluster: `{needs}`")


def rejected(plan: Plan) -> str:
    """Return that the settings can't be used, empty if they can."""
    if not plan.settings.rejected:
        return ""
    return (
        f"the settings have a mistake, so the default ones show what is announced: {plan.settings.rejected}"
    )


CORRECT = "correct the clocks of their machines, such as with `chronyc makestep`"


def clocks_disagree(plan: Plan) -> str:
    """Return what the clocks of the API servers disagree about, empty if that changes no start."""
    clocks = plan.disagreement
    return clocks.words(plan.now) if clocks is not None and clocks.counts else ""


def selects_none(plan: Plan) -> str:
    """Return that the settings select no node although there are some, empty if that is not so."""
    if plan.managed or not plan.fleet:
        return ""
    return f"the settings select none of the {count_of(len(plan.fleet), 'node')}, so no node is ever drained"


def on_most(plan: Plan) -> dict[str, list[str]]:
    """Return the nodes with a condition that drains none, because it is on most nodes, by what says so."""
    grouped: dict[str, list[str]] = {}
    for node in plan.nodes:
        for hold in node.holds:
            if hold.code == "conditionOnFewNodes":
                grouped.setdefault(hold.reason, []).append(node.node)
    return grouped


def unguarded(nodes: Iterable[NodePlan]) -> dict[str, list[NodePlan]]:
    """Return the nodes that nobody guards, by what is announced and why."""
    by_name = {node.node: node for node in nodes if node.unguarded is not None}
    said = []
    for node in by_name.values():
        named = dict.fromkeys(event.condition or event.kind.value for event in node.case_events)
        because = node.unguarded.because if node.unguarded is not None else ""
        said.append((node.node, f"{', '.join(named) or 'maintenance'}: {because}"))
    return {text: [by_name[name] for name in names] for text, names in by_cause(said).items()}


def by_cause(said: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names of nodes by what is said of them, each with `NODE` for its own name.

    A cause that has another date or duration on each node is one: its text is the one with the earliest date.
    """
    said = list(dict.fromkeys(said))
    timeless = {text: without_times(text) for _, text in said}
    # A text that names several nodes, and is the same for all of them, keeps their names.
    shared = Counter(timeless[text] for _, text in said)
    causes: dict[str, dict[str, list[str]]] = {}
    for node, text in said:
        cause, words = timeless[text], text
        if shared[cause] == 1:
            words = for_any(node, text)
            cause = without_times(words)
        causes.setdefault(cause, {}).setdefault(words, []).append(node)
    grouped = {}
    for texts in causes.values():
        earliest = min(texts, key=lambda text: first_moment(text) or _NEVER)
        dated = len(texts) > 1 and first_moment(earliest) is not None
        words = f"{earliest} (the first of {len(texts)} dates)" if dated else earliest
        grouped[words] = list(dict.fromkeys(name for names in texts.values() for name in names))
    return grouped


def alarms(plan: Plan) -> Iterator[str]:
    """Yield in a line each what no plan may look quiet beside, such as unguarded nodes."""
    if rejected(plan):
        yield f"SETTINGS REJECTED: {rejected(plan)}"
    if clocks := clocks_disagree(plan):
        yield f"CLOCKS: {clocks}; {CORRECT}"
    if selects_none(plan):
        yield f"NO NODE: {selects_none(plan)}; change `nodeSelector`"
    for text, names in on_most(plan).items():
        yield f"NOT DRAINED: {first_of(names, _NAMED)}: {text}"
    for text, nodes in unguarded(plan.nodes).items():
        names = [node.node for node in nodes]
        words = with_time_left(for_all(names, text), plan.now)
        yield f"UNGUARDED: {first_of(names, _NAMED)}: {words}"


def for_any(node: str, text: str) -> str:
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


def for_all(nodes: list[str], text: str) -> str:
    """Return such a text for these nodes: with the name if there is one node only."""
    return text.replace(_NODE, nodes[0]) if len(nodes) == 1 else text


def to_type(nodes: list[str], text: str) -> str:
    """Return the same, with all names in a command that takes several nodes, so that it can be copied.

    A command that shows something of one node is about the first one.
    """
    if 1 < len(nodes) <= _TYPED:
        text = _several().sub(rf"\1 {' '.join(nodes)}", text)
    return for_all(nodes, _OF_ONE.sub(rf"\1{nodes[0]}", text) if nodes else text)
