"""A case whose node is deleted has ended, although its record is gone with the node."""

from __future__ import annotations

import pytest

from jobs.runtime.acting import OpenCases
from reconciler.model.case_outcome import CaseResult, InTime
from reconciler.model.ended_case import EndedCase
from reconciler.model.event import Kind
from reconciler.model.machine import OPENSHIFT
from reconciler.simulation.machines import SimulatedMachines
from tests.laws.histories import History
from tests.passes.decide.test_history import CLOSED, NOTHING, OPEN, Kept, history, imds
from tests.support import builders
from tests.support.builders import IMDS, NOW, REQUEST, minutes
from tests.support.worlds import in_pool, world_of


class Process:
    """A process that runs passes over a scene."""

    def __init__(self, scene: History) -> None:
        self.scene, self.open = scene, OpenCases()

    def look(self, passes: int = 1) -> tuple[EndedCase, ...]:
        """Run passes two minutes apart; the cases that ended with their nodes."""
        found: tuple[EndedCase, ...] = ()
        for _ in range(passes):
            plan, _ = self.scene.look()
            found += self.open.after(plan)
            self.scene.wait(minutes(2))
        return found


def announced(text: str = OPEN, kind: Kind = Kind.PREEMPT) -> tuple[Process, Kept]:
    scene, kept = history(text)
    scene.cluster.annotate("a", IMDS, imds(kind=kind))
    return Process(scene), kept


def test_a_node_that_was_drained_before_it_was_deleted_was_in_time() -> None:
    process, kept = announced()
    assert process.look(3) == ()
    process.scene.cluster.delete_node("a")
    (case,) = process.look()

    assert (case.place.node, case.kind, case.outcome, case.outcome.in_time) == (
        "a",
        "Preempt",
        CaseResult.DRAINED,
        InTime.YES,
    )
    assert case.why == "in time: drained at 2026-11-21T12:02:00Z; its node was deleted"
    assert (case.times.announced, case.times.ended) == (NOW, NOW + minutes(6))
    assert (case.times.gone, case.times.uncordoned) == (None, None)
    assert case.pods_moved == 2
    assert kept.cases == []
    assert process.look(2) == ()


def test_of_a_node_that_was_deleted_before_its_drain_nobody_knows_more() -> None:
    process, _ = announced(CLOSED, Kind.REDEPLOY)
    process.look()
    process.scene.cluster.delete_node("a")
    (case,) = process.look()

    assert (case.outcome, case.outcome.in_time) == (CaseResult.STOPPED, InTime.UNKNOWN)
    assert case.why.endswith("; its node was deleted")


@pytest.mark.parametrize("drained", [True, False])
def test_a_node_that_the_platform_met_with_pods_is_missed_also_if_it_is_deleted(drained: bool) -> None:
    process, _ = announced(OPEN if drained else CLOSED, Kind.REBOOT)
    process.look(2)
    process.scene.cluster.annotate("a", IMDS, imds("Started", Kind.REBOOT))
    process.look()
    process.scene.cluster.delete_node("a")
    (case,) = process.look()

    assert case.outcome is (CaseResult.DRAINED if drained else CaseResult.MISSED)
    assert case.pods_left == (0 if drained else 2)


def test_another_node_of_the_same_name_does_not_hide_the_end() -> None:
    process, _ = announced()
    process.look(2)
    process.scene.cluster.recreate_node("a")

    assert [case.place.uid for case in process.look()] == ["uid-a"]


def test_a_case_that_ends_or_is_released_is_not_one_of_a_deleted_node() -> None:
    process, kept = announced()
    process.look(2)
    for step in (imds("Started"), NOTHING):
        process.scene.cluster.annotate("a", IMDS, step)
        assert process.look(4) == ()
    assert len(kept.cases) == 1

    process.scene.cluster.annotate("a", IMDS, imds(id_="B2", ahead=60))
    process.look(2)
    process.scene.cluster.annotate("a", IMDS, NOTHING)
    for key in (builders.RECORD, builders.UID):
        process.scene.cluster.annotate("a", key, None)
    for key in (builders.STATE, builders.WHY):
        process.scene.cluster.label("a", key, None)
    process.scene.cluster.cordon("a", on=False)

    assert process.look(2) == ()


def replaced() -> tuple[History, Kept, SimulatedMachines]:
    """A node whose machine is to be deleted, drained so far."""
    world, kept = world_of(), Kept()
    world.ended = kept
    machines, _ = in_pool(world, "a", "b", provider=OPENSHIFT)
    world.cluster.add_pod(builders.pod("web", "a"))
    chosen = builders.settings("budget: {maxUnavailable: 1}\nevents: {Redeploy: {replace: true}}")
    world.cluster.annotate("a", REQUEST, '{"kind":"Redeploy"}')
    return History(world, chosen), kept, machines


def test_the_case_of_a_replaced_node_is_kept_with_the_request_to_delete_its_machine() -> None:
    scene, kept, machines = replaced()
    process = Process(scene)
    process.look(3)
    case = kept.cases[-1]

    assert machines.asked
    assert (case.outcome, case.outcome.in_time, case.pods_moved) == (CaseResult.DRAINED, InTime.YES, 1)
    assert case.why.endswith("; its machine is deleted to be replaced")
    assert case.times.uncordoned is None
    machines.step()
    (later,) = process.look()
    assert later.identity == case.identity
    assert later.why.endswith("; its machine was deleted to be replaced")
