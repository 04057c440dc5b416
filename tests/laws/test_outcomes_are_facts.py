"""Whatever happens, an event that starts while pods have to go ends as missed, and people are told once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.plan import NodePlan
from reconciler.settings.schema import Settings
from tests.laws.histories import History
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.builders import IMDS, minutes, pod, published
from tests.support.searching import examples
from tests.support.strategies import rfc1123
from tests.support.worlds import maintenances, world_of

NAMES = ("n0", "n1", "n2")
POLICIES = (
    "",
    "budget: {maxUnavailable: 1}",
    "budget: {maxUnavailable: 0}",
    'windows: [{name: later, start: "16:00", end: "17:00"}]',
    "notAllowed: [{name: sale, start: 2026-11-21, end: 2026-11-22, absolute: true}]",
    "drain: {maxConcurrentNodes: 1}",
    "mode: Finish",
)
MOVES = ("announce", "start", "end", "pod", "stuck pod", "free", "nothing")


@dataclass(slots=True)
class Watcher:
    """What a person would have seen, without the program: which events met pods when they started."""

    history: History
    events: dict[str, str] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    met: set[str] = field(default_factory=set)
    missed: Counter[str] = field(default_factory=Counter)
    struck: set[str] = field(default_factory=set)
    number: int = 0

    def move(self, what: str, name: str) -> None:
        """Let one thing happen on a node."""
        cluster = self.history.cluster
        match what:
            case "announce" if name not in self.events:
                self.events[name] = self._id()
            case "start":
                self.events.setdefault(name, self._id())
                self.started.add(self.events[name])
            case "end":
                self.events.pop(name, None)
            case "pod" | "stuck pod" if not cluster.nodes[name].unschedulable:
                one = pod(self._id(), name)
                cluster.add_pod(one)
                if what == "stuck pod":
                    cluster.finalizers.add(one.uid)
            case "free":
                cluster.finalizers.clear()
                for one in cluster.pods_on(name):
                    if one.deleting_until is not None:
                        cluster.drop_pod(one.uid)
        self._say(name)

    def look(self) -> None:
        """Run a pass, and compare what it says with what happened."""
        for name, event in self.events.items():
            if event in self.started - self.seen:
                self.seen.add(event)
                if self.history.cluster.pods_on(name):
                    self.met.add(event)
                    self.missed[name] += name not in self.struck
                    self.struck.add(name)
        plan, _ = self.history.look()
        found = {one.node: one for one in plan.nodes}
        for name in NAMES:
            self._compare(name, found.get(name))

    def _compare(self, name: str, plan: NodePlan | None) -> None:
        outcome = plan.outcome if plan is not None else None
        if outcome is None:
            assert not self.struck & {name}, "a missed case ends without a word"
            return
        assert (outcome.result == "missed") is (name in self.struck)
        if plan is not None and plan.ended is not None:
            self.struck.discard(name)

    def _id(self) -> str:
        self.number += 1
        return f"x{self.number}"

    def _say(self, name: str) -> None:
        event = self.events.get(name)
        if event is None:
            text = published(vm="vm")
        else:
            begun = event in self.started
            date = "" if begun else rfc1123(self.history.now + minutes(600))
            text = published(
                {
                    "EventId": event,
                    "EventType": "Reboot",
                    "EventStatus": "Started" if begun else "Scheduled",
                    "NotBefore": date,
                },
                vm="vm",
            )
        self.history.cluster.annotate(name, IMDS, text)


MISSED = Hits()


@MISSED.at_least(12)
@settings(max_examples=examples(160))
@given(
    st.sampled_from(POLICIES),
    st.lists(
        st.tuples(st.sampled_from(MOVES), st.sampled_from(NAMES), st.sampled_from((0, 1, 3, 40))),
        min_size=4,
        max_size=14,
    ),
)
def test_an_event_that_starts_while_pods_have_to_go_is_missed_and_told_once(
    text: str, moves: list[tuple[str, str, int]]
) -> None:
    mode = "Finish" if text == "mode: Finish" else "Enforce"
    watcher = Watcher(History(world_of([builders.node(name) for name in NAMES]), policy(text, mode)))
    for what, name, wait in moves:
        watcher.move(what, name)
        watcher.look()
        watcher.history.wait(minutes(wait))
    for name in NAMES:
        watcher.move("end", name)
        watcher.move("free", name)
    for _ in range(6):
        watcher.look()
        watcher.history.wait(minutes(40))
    cluster = watcher.history.cluster
    told = Counter(one.node for one in cluster.events if one.notice.reason == "MaintenanceMissed")
    assert told == +watcher.missed
    ends = {id_: one.state for one in maintenances(cluster).values() for id_ in one.event.ids}
    assert {id_ for id_, state in ends.items() if state == "Missed"} == watcher.met
    MISSED.count(bool(watcher.met))


def policy(text: str, mode: str) -> Settings:
    budget = "" if "budget:" in text else "budget: {maxUnavailable: 100%}\n"
    return builders.settings(
        f"{budget}publish: [nodemaintenances]\n{text if 'mode' not in text else ''}", mode=mode
    )
