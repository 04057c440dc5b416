"""Law 24: what the cluster undoes is not repeated without end, and the case says what undoes it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.model.errors import Forbidden, Rejected
from reconciler.model.holds import DISMISSED, NODE_WRITABLE
from reconciler.model.node import Node
from reconciler.model.plan import NoticeType, Plan
from reconciler.model.snapshot import FIRST_PAUSE, NOT_WRITTEN
from reconciler.model.values import replace
from reconciler.simulation.api import Call
from reconciler.simulation.workloads import Workload
from reconciler.simulation.world import World
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.builders import PREFIX, RECORD, REQUEST
from tests.support.searching import examples
from tests.support.worlds import carry_on, look, world_of

WRITES = 8
"""Writes of a whole case in which nothing is undone: on the node, and evictions of two pods."""

EACH_TRY = 3
"""A patch, what takes it back, and a little for a pass that has another thing to write."""

POLICY = "mode: Enforce\nbudget: {maxUnavailable: 100%}\ndrain: {timeout: 10m}\n"

NO_PLACES = POLICY.replace("100%", "0")

Which = Callable[[str], bool]
Admission = Callable[[Node, Node], Node]


def _without(labels: Which, annotations: Which) -> Admission:
    def admitted(_: Node, after: Node) -> Node:
        kept = {key: text for key, text in after.labels.items() if not labels(key)}
        notes = {key: text for key, text in after.annotations.items() if not annotations(key)}
        return replace(after, labels=kept, annotations=notes)

    return admitted


def _no(_: str) -> bool:
    return False


def _ours(key: str) -> bool:
    return key.startswith(PREFIX) and key != REQUEST


def _stripped(node: Node) -> Node:
    return _without(_no, _ours)(node, node)


def _same_cordon(before: Node, after: Node) -> Node:
    return replace(after, unschedulable=before.unschedulable)


def _denied(before: Node, after: Node) -> Node:
    if before.annotations.get(RECORD) != after.annotations.get(RECORD):
        raise Forbidden("admission webhook denied the request: only known annotations", status=403)
    return after


def _too_long(before: Node, after: Node) -> Node:
    if before.annotations.get(RECORD) != after.annotations.get(RECORD):
        raise Rejected("metadata.annotations: Too long: may not be more than 262144 bytes", status=422)
    return after


ADMISSION: Mapping[str, Admission] = {
    "a webhook removes our annotations": _without(_no, _ours),
    "a webhook removes our labels": _without(_ours, _no),
    "a webhook removes all that is ours": _without(_ours, _ours),
    "a webhook keeps the cordon as it is": _same_cordon,
    "a policy denies the record": _denied,
    "the annotations are at their limit": _too_long,
}
RETURNS = "pods come back, because they tolerate the cordon"
UNCORDONED = "somebody uncordons the node after each pass"
STRIPPED = "a controller removes our annotations after each pass"
STRIPPED_FOREIGN = "a controller removes our annotations from a node that somebody else cordoned"
STRIPPED_WAITING = "a controller removes our annotations from a node that waits for the budget"
STRIPS = (STRIPPED, STRIPPED_FOREIGN, STRIPPED_WAITING)
SHOWN_ONLY = "a webhook removes our labels"


@dataclass(slots=True)
class Counted:
    """Counts what the program asks to write on the node and its pods, refused or not."""

    kinds: Counter[str] = field(default_factory=Counter)

    def __call__(self, call: Call) -> None:
        if call.what in ("patch_node", "evict", "delete"):
            self.kinds[call.what] += 1


def _world(undoes: str) -> tuple[World, Counted]:
    foreign, asked = undoes == STRIPPED_FOREIGN, {REQUEST: builders.DRAIN_NOW}
    world = world_of([builders.node("n0", annotations=asked, unschedulable=foreign), builders.node("spare")])
    returns = undoes == RETURNS
    workload = Workload(
        "team", "web", replicas=2, tolerates_cordon=returns, node_name="n0" if returns else ""
    )
    world.cluster.add_workload(workload)
    carry_on(world)
    world.cluster.admission = ADMISSION.get(undoes)
    counted = Counted()
    world.api.before_write = counted
    return world, counted


def _says(plan: Plan, undoes: str) -> bool:
    """Whether the case says what undoes its writes."""
    node = next((one for one in plan.nodes if one.node == "n0"), None)
    if node is None:
        return False
    codes = {hold.code for hold in node.holds}
    if undoes == RETURNS:
        drained = node.draining.progress
        kept = (*node.draining.kept, *(drained.blockers if drained is not None else ()))
        return any("tolerates the cordon" in one.because for one in kept) or "tolerate" in node.draining.stays
    if undoes == UNCORDONED:
        return DISMISSED.code in codes
    return NODE_WRITABLE.code in codes


_undoings = st.sampled_from((*ADMISSION, RETURNS, UNCORDONED, *STRIPS))
hits = Hits()


@pytest.mark.heavy
@hits.at_least(30)
@settings(max_examples=examples(80))
@given(undoes=_undoings, every=st.integers(1, 90), passes=st.integers(30, 120))
@example(undoes=STRIPPED, every=30, passes=120)
@example(undoes=STRIPPED_FOREIGN, every=30, passes=120)
@example(undoes=STRIPPED_WAITING, every=30, passes=120)
def test_the_writes_grow_at_most_with_the_logarithm_of_the_time(undoes: str, every: int, passes: int) -> None:
    world, counted = _world(undoes)
    policy = builders.settings(NO_PLACES if undoes == STRIPPED_WAITING else POLICY)
    said = False
    for _ in range(passes):
        plan, _ = look(world, policy)
        said = said or _says(plan, undoes)
        world.advance(timedelta(seconds=every))
        node = world.cluster.nodes["n0"]
        if undoes == UNCORDONED and node.unschedulable:
            world.cluster.cordon("n0", on=False)
        if undoes in STRIPS:
            world.cluster.put_node(_stripped(node))
    gone = timedelta(seconds=every * passes) / FIRST_PAUSE
    hits.count()

    assert counted.kinds.total() <= WRITES + EACH_TRY * math.log2(2 + gone), counted.kinds
    assert said or undoes == SHOWN_ONLY


def test_a_record_that_is_removed_once_is_written_again_at_once() -> None:
    world, _ = _world(STRIPPED)
    policy = builders.settings(POLICY)
    look(world, policy)
    for _ in range(2):
        world.advance(timedelta(seconds=30))
        world.cluster.put_node(_stripped(world.cluster.nodes["n0"]))
        plan, _ = look(world, policy)

        assert RECORD in world.cluster.nodes["n0"].annotations
        assert not _says(plan, STRIPPED)
    # Then it takes its course.
    for _ in range(3):
        world.advance(timedelta(seconds=5))
        plan, _ = look(world, policy)
        assert not _says(plan, STRIPPED)


def test_what_removes_the_record_is_said_also_after_passes_that_found_it() -> None:
    world, _ = _world(STRIPPED)
    policy = builders.settings(POLICY)
    look(world, policy)
    waited = []
    for _ in range(8):
        for _ in range(3):
            world.advance(timedelta(seconds=20))
            look(world, policy)
        world.cluster.put_node(_stripped(world.cluster.nodes["n0"]))
        plan, _ = look(world, policy)
        waited.append(_says(plan, STRIPPED))

    assert waited[0] is False
    assert waited[-1] is True
    reasons = [(one.notice.reason, one.notice.type) for one in world.cluster.events]
    assert (NOT_WRITTEN, NoticeType.WARNING) in reasons


def test_a_cordon_does_not_wait_for_a_record_that_is_removed_again_and_again() -> None:
    world, _ = _world(STRIPPED_WAITING)
    for _ in range(30):
        plan, _ = look(world, builders.settings(NO_PLACES))
        world.advance(timedelta(seconds=30))
        world.cluster.put_node(_stripped(world.cluster.nodes["n0"]))
    assert _says(plan, STRIPPED_WAITING)
    look(world, builders.settings(POLICY))

    assert world.cluster.nodes["n0"].unschedulable
    assert RECORD in world.cluster.nodes["n0"].annotations
