"""What is kept of passes in mode Observe, across processes and modes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from jobs.runtime.process import Observer, Passed
from reconciler.features.observed.cases import Kept, ObservedCase, Stretch
from reconciler.features.observed.observing import Observing
from reconciler.kubernetes.kept_lines import KeptLines
from reconciler.model.errors import ClusterError, Rejected
from reconciler.model.plan import Plan
from reconciler.settings.schema import Settings
from tests.features.observed.scene import POOL
from tests.features.observed.scene import Observing as Scene
from tests.support.builders import minutes, settings
from tests.support.controlplane.processes import wait_for


class Place:
    """The ConfigMap, as one client of it sees it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.name, self.kind = "node-maintenance/node-maintenance-observed", cluster
        self._read = -1

    def read(self) -> KeptLines[Kept] | None:
        if self._cluster.refuses is not None:
            raise self._cluster.refuses
        self._read = self._cluster.writes
        return self._cluster.kept

    def write(self, kept: KeptLines[Kept]) -> None:
        if self._cluster.refuses is not None:
            raise self._cluster.refuses
        assert self._read == self._cluster.writes, "somebody else has written it"
        self._cluster.kept = kept
        self._cluster.writes += 1
        self._read = self._cluster.writes


class Cluster:
    """What the cluster keeps."""

    what = name = "observed cases"

    def __init__(self) -> None:
        self.kept: KeptLines[Kept] | None = None
        self.writes = 0
        self.refuses: ClusterError | None = None

    @property
    def lines(self) -> list[Kept]:
        return list(self.kept.lines) if self.kept is not None else []

    @property
    def cases(self) -> list[ObservedCase]:
        return [line for line in self.lines if isinstance(line, ObservedCase)]

    @property
    def stretches(self) -> list[Stretch]:
        return [line for line in self.lines if isinstance(line, Stretch)]


class Others(Observer):
    def __init__(self) -> None:
        self.said: list[tuple[str, object, object]] = []

    def happened(self, event: str, fields: Mapping[str, object]) -> None:
        self.said.append((event, fields.get("node"), fields.get("fate")))


class Process:
    """A process that observes, and one pass after the other."""

    def __init__(self, scene: Scene, cluster: Cluster) -> None:
        self._scene, self.others = scene, Others()
        self.observing = Observing(lambda: Place(cluster), lambda: scene.world.now, self.others)  # type: ignore[arg-type,return-value]  # a fake

    def passes(self, for_minutes: int = 0) -> None:
        for _ in range(for_minutes + 1):
            self.after(self._scene.passes(), self._scene.settings)
            if for_minutes:
                self._scene.world.advance(minutes(1))

    def begins(self) -> None:
        """Make passes until it is known what was kept before."""
        self.passes()
        wait_for("what was kept before", self._observes)

    def _observes(self) -> bool:
        self.passes()
        return self.observing.known[0] is not None

    def after(self, plan: Plan, chosen: Settings, *, rehearsed: bool = True) -> None:
        self.observing.after(Passed(plan, chosen, rehearsed=rehearsed))

    def ends(self) -> None:
        self.observing.__exit__()


def test_the_cluster_keeps_since_when_is_observed_and_what_became_of_each_case() -> None:
    scene, cluster = Scene(), Cluster()
    process = Process(scene, cluster)
    process.begins()
    began = process.observing.known[0]
    scene.announces(0, in_minutes=30)
    process.passes(45)
    process.ends()

    (case,) = cluster.cases
    assert cluster.stretches == [began]
    assert (case.fate.value, case.over is not None) == ("in time", True)
    assert process.others.said == [("observed", case.node, "in time")]
    assert cluster.kept is not None
    assert began is not None
    assert cluster.kept.whole_from == began.since


def test_a_next_process_goes_on_and_writes_nothing_while_nothing_changes() -> None:
    scene, cluster = Scene(), Cluster()
    first = Process(scene, cluster)
    first.begins()
    scene.announces(0, in_minutes=30)
    first.passes(5)
    first.ends()
    before = cluster.writes

    second = Process(scene, cluster)
    second.begins()
    second.passes(5)
    second.ends()
    assert cluster.writes == before
    assert second.observing.known == first.observing.known

    third = Process(scene, cluster)
    third.begins()
    third.passes(40)
    third.ends()
    (case,) = cluster.cases
    assert case.over is not None
    assert len(cluster.stretches) == 1


def test_two_replicas_keep_a_case_once() -> None:
    scene, cluster = Scene(), Cluster()
    replicas = [Process(scene, cluster) for _ in range(2)]
    for replica in replicas:
        replica.begins()
    scene.announces(0, in_minutes=30)
    for replica in (*replicas, *replicas):
        replica.passes()
        scene.world.advance(minutes(1))
    for replica in replicas:
        replica.ends()

    assert len(cluster.cases) == 1


def test_another_mode_ends_the_time_in_which_is_observed_and_observe_begins_another() -> None:
    scene, cluster = Scene(), Cluster()
    process = Process(scene, cluster)
    process.begins()
    scene.world.advance(minutes(10))
    process.after(scene.passes(), settings(), rehearsed=False)
    assert process.observing.known[0] is None
    scene.world.advance(minutes(10))
    process.passes()
    process.ends()

    first, second = cluster.stretches
    assert first.until == first.since + minutes(10)
    assert second == Stretch(first.since + minutes(20))


def test_with_a_time_of_0_nothing_is_read_and_written() -> None:
    scene, cluster = Scene("observed: {keep: 0s}"), Cluster()
    cluster.refuses = Rejected("nobody may ask")
    process = Process(scene, cluster)
    scene.announces(0)
    process.passes(3)
    process.ends()

    assert process.observing.known == (None, ())


def test_who_may_not_write_it_follows_the_cases_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    scene, cluster = Scene(), Cluster()
    cluster.refuses = Rejected("configmaps is forbidden")
    process = Process(scene, cluster)
    process.begins()
    scene.announces(0, in_minutes=30)
    process.passes(45)
    process.ends()

    _, (case,) = process.observing.known
    assert case.fate.value == "in time"
    (line,) = [line for line in caplog.messages if "are not kept" in line]
    assert line.endswith("node-maintenance-observed: configmaps is forbidden")


def test_the_page_has_the_sum_and_the_next_step_first_while_the_mode_is_observe() -> None:
    scene = Scene()
    process = Process(scene, Cluster())
    assert process.observing.panels(Passed(scene.passes(), scene.settings), None) == ()
    process.begins()
    scene.announces(0, in_minutes=30)
    process.passes(45)
    (panel,) = process.observing.panels(Passed(scene.passes(), scene.settings), None)
    process.after(scene.passes(), settings(), rehearsed=False)
    process.ends()

    assert "1 node was announced; 1 would have been drained in time" in panel.answer
    assert [row[1:3] for row in panel.rows] == [(POOL.node(0).name, "in time")]
    assert [step.title for step in panel.steps if step.todo] == ["Enforce on one pool"]
    assert process.observing.panels(Passed(scene.passes(), settings()), None) == ()
