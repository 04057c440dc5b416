"""Whatever happens, each case is kept when it ends, once, with what the cluster showed of it."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.runtime.acting import OpenCases
from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import EndedCase, from_fields, to_fields
from reconciler.model.record import record_of
from tests.laws.histories import History
from tests.laws.hits import Hits
from tests.laws.test_outcomes_are_facts import MOVES, NAMES, POLICIES, Watcher, policy
from tests.passes.decide.test_history import Kept
from tests.support import builders
from tests.support.builders import minutes, pod
from tests.support.searching import examples
from tests.support.worlds import world_of

PEOPLE = ("uncordon", "delete", "kill")


class Historian:
    """Runs passes, and compares what they keep with the records that have gone."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher, self.kept, self.open = watcher, Kept(), OpenCases()
        self.watcher.history.world.ended = self.kept
        self.was_open: set[str] = set()
        self.remembered: set[str] = set()
        self.all: list[EndedCase] = []

    def move(self, what: str, name: str) -> None:
        """Let one thing happen; a node that is deleted comes back with another UID."""
        world = self.watcher.history.world
        match what:
            case "uncordon":
                world.cluster.cordon(name, on=False)
            case "delete":
                world.cluster.recreate_node(name)
            case "kill":
                world.restart()
                self.open, self.remembered = OpenCases(), set()
            case _:
                self.watcher.move(what, name)

    def look(self) -> None:
        """Run a pass: what was open before and is not any more has been kept in it, and nothing else."""
        there = {node.uid for node in self.watcher.history.cluster.nodes.values()}
        plan, _ = self.watcher.history.look()
        deleted = self.open.after(plan)
        now_open, in_a_state = self._open_cases(), self._open_cases(only_states=True)
        ended = [case.place.uid for case in self.kept.cases]
        assert sorted(ended) == sorted((self.was_open & there) - now_open)
        assert {case.place.uid for case in deleted} == self.remembered - there
        for case in (*self.kept.cases, *deleted):
            self._check(case)
        self.all += [*self.kept.cases, *deleted]
        self.kept.cases.clear()
        self.was_open, self.remembered = now_open, in_a_state

    def _open_cases(self, *, only_states: bool = False) -> set[str]:
        """The UIDs of nodes with a case; with `only_states` without those that only have facts."""
        found = set()
        for node in self.watcher.history.cluster.nodes.values():
            record = record_of(node, builders.PREFIX)
            kept = dict(getattr(record, "profiles", ())).get("default")
            if kept is None:
                continue
            facts = bool(kept.facts.starts) or kept.facts.deadline_passed is not None
            if kept.open or (facts and not only_states):
                found.add(node.uid)
        return found

    def _check(self, case: EndedCase) -> None:
        times = case.times
        assert from_fields(json.loads(json.dumps(to_fields(case)))) == case
        assert times.ended <= self.watcher.history.now
        order = (times.case_start, times.announced, times.started, times.drained, times.ended)
        known = [moment for moment in order if moment is not None]
        assert known == sorted(known)
        # After an uncordon by hand, the case goes on until the platform has acted or called off.
        assert times.uncordoned is None or times.case_start <= times.uncordoned <= times.ended
        assert (case.outcome is CaseResult.MISSED) <= bool(case.pods_left)


ENDED, BAD = Hits(), Hits()


@ENDED.at_least(40)
@BAD.at_least(8)
@settings(max_examples=examples(60))
@given(
    st.sampled_from(POLICIES),
    st.lists(
        st.tuples(
            st.sampled_from((*MOVES, *MOVES, *PEOPLE)), st.sampled_from(NAMES), st.sampled_from((0, 1, 3, 40))
        ),
        min_size=4,
        max_size=14,
    ),
)
def test_each_case_is_kept_once_when_it_ends(text: str, moves: list[tuple[str, str, int]]) -> None:
    mode = "Finish" if text == "mode: Finish" else "Enforce"
    world = world_of([builders.node(name) for name in NAMES], [pod(f"web-{name}", name) for name in NAMES])
    historian = Historian(Watcher(History(world, policy(text, mode))))
    for what, name, wait in moves:
        historian.move(what, name)
        historian.look()
        historian.watcher.history.wait(minutes(wait))
    for name in NAMES:
        historian.move("end", name)
        historian.move("free", name)
    for _ in range(6):
        historian.look()
        historian.watcher.history.wait(minutes(40))

    assert historian.was_open == set()
    assert len({case.identity for case in historian.all}) == len(historian.all)
    ENDED.count(bool(historian.all))
    BAD.count(any(not case.outcome.good for case in historian.all))
