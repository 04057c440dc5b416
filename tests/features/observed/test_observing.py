"""What is kept of passes in mode Observe, across processes and modes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from jobs.runtime.process import Observer, Passed
from reconciler.features.observed.cases import OBSERVED_CASES, Kept, ObservedCase, Stretch
from reconciler.features.observed.observing import Observing
from reconciler.kubernetes.kept_lines import KeptLines, packed, unpacked
from reconciler.model.errors import ClusterError, Conflict, Rejected, Unreachable
from reconciler.model.plan import Plan
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from reconciler.simulation.workloads import Workload
from tests.features.observed.scene import LEDGER, POOL, WEB
from tests.features.observed.scene import Observing as Scene
from tests.features.observed.test_agreement import TEXTS, Play, all_at_once, one_after_the_other
from tests.support.builders import DRAIN_NOW, minutes, settings
from tests.support.controlplane.processes import wait_for


class Place:
    """The ConfigMap, as one client of it sees it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.name, self.kind = "node-maintenance/node-maintenance-observed", cluster
        self._read = -1

    def read(self) -> KeptLines[Kept] | None:
        self._cluster.reads += 1
        if self._cluster.refuses is not None:
            raise self._cluster.refuses
        self._read = self._cluster.writes
        return self._cluster.kept

    def write(self, kept: KeptLines[Kept]) -> None:
        if self._cluster.refuses is not None:
            raise self._cluster.refuses
        if self._read != self._cluster.writes:
            raise Conflict("somebody else has written it")
        self._cluster.kept = unpacked(OBSERVED_CASES, packed(OBSERVED_CASES, kept))
        self._cluster.writes += 1
        self._read = self._cluster.writes


class Cluster:
    """What the cluster keeps."""

    what = name = "observed cases"

    def __init__(self) -> None:
        self.kept: KeptLines[Kept] | None = None
        self.reads = self.writes = 0
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

    def __init__(self, scene: Scene, cluster: Cluster, *, goes_on: bool = True) -> None:
        self._scene, self.others = scene, Others()
        self.observing = Observing(Place(cluster), lambda: scene.world.now, self.others, goes_on=goes_on)  # type: ignore[arg-type]  # a fake

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


def test_what_was_kept_is_read_once() -> None:
    scene, cluster = Scene(), Cluster()
    process = Process(scene, cluster)
    process.begins()
    scene.announces(0, in_minutes=30)
    process.passes(5)
    process.ends()

    assert (len(cluster.cases), cluster.reads) == (1, 1)


def test_two_replicas_keep_a_case_once(caplog: pytest.LogCaptureFixture) -> None:
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
    assert caplog.messages == []


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


class Sweeps:
    """Sweeps of a CronJob: each pass is that of a process of its own."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self.cluster = scene, Cluster()
        self.said: list[tuple[str, object, object]] = []

    def passes(self, for_minutes: int = 0) -> None:
        for _ in range(for_minutes + 1):
            self.after(self._scene.passes())
            if for_minutes:
                self._scene.world.advance(minutes(1))

    def after(self, plan: Plan) -> None:
        """Sweep; there is one read, and one write at most."""
        reads, writes = self.cluster.reads, self.cluster.writes
        sweep = Process(self._scene, self.cluster, goes_on=False)
        sweep.after(plan, self._scene.settings)
        sweep.ends()
        self.said += sweep.others.said
        assert self.cluster.reads == reads + 1
        assert self.cluster.writes <= writes + 1


@pytest.mark.parametrize("play", [all_at_once, one_after_the_other])
@pytest.mark.parametrize("text", TEXTS)
def test_sweeps_keep_what_serve_keeps(play: Play, text: str) -> None:
    scene = Scene(text, workloads=(WEB, LEDGER))
    sweeps = Sweeps(scene)
    play(scene)
    sweeps.passes(50)
    # Others move in before the platform starts.
    scene.world.cluster.add_workload(Workload("shop", "late", replicas=5))
    sweeps.passes(120)

    kept = {case.node: case for case in sweeps.cluster.cases}
    assert worded(kept.values()) == worded(scene.cases)
    assert len(kept) == 3
    assert all(case.over for case in kept.values())
    assert sweeps.said == [("observed", case.node, case.fate.value) for case in over(kept)]


def test_sweeps_know_a_start_that_another_case_has_moved() -> None:
    scene = Scene(
        "windows: [{name: noon, start: '13:00', end: '14:00'}]\nbudget: {maxUnavailable: 2, spacing: 10m}"
    )
    sweeps = Sweeps(scene)
    scene.announces(0, in_minutes=150)
    sweeps.passes(5)
    scene.announces(1, in_minutes=100)
    sweeps.passes(65)

    kept = {case.node: case for case in sweeps.cluster.cases}
    first, second = kept[POOL.node(1).name].begins, kept[POOL.node(0).name].begins
    assert worded(kept.values()) == worded(scene.cases)
    assert first is not None
    assert second == first + minutes(10)


def worded(cases: Iterable[ObservedCase]) -> dict[str, ObservedCase]:
    """The cases by their nodes; the moments in a reason are those of the last change that was kept."""
    return {case.node: replace(case, because="" if case.late else case.because) for case in cases}


def over(cases: Mapping[str, ObservedCase]) -> list[ObservedCase]:
    """Those that are over, the first first."""
    return sorted(cases.values(), key=lambda case: (str(case.over), case.node))


def test_a_sweep_writes_nothing_while_starts_only_move_with_the_clock() -> None:
    scene = Scene("budget: {maxUnavailable: 1}")
    for instance in (0, 1):
        scene.world.cluster.annotate(POOL.node(instance).name, "node-maintenance.dev/request", DRAIN_NOW)
    sweeps = Sweeps(scene)
    sweeps.passes()
    writes = sweeps.cluster.writes
    sweeps.passes(10)

    assert len(sweeps.cluster.cases) == 2
    assert sweeps.cluster.writes == writes == 1


def test_a_sweep_that_can_not_read_what_was_kept_writes_nothing() -> None:
    scene = Scene()
    sweeps = Sweeps(scene)
    scene.announces(0, in_minutes=30)
    sweeps.passes(2)
    kept = sweeps.cluster.kept
    sweeps.cluster.refuses = Unreachable("no answer")
    sweeps.passes(2)
    sweeps.cluster.refuses = None

    assert sweeps.cluster.kept == kept


def test_a_time_that_goes_on_is_kept_however_old_it_is() -> None:
    scene = Scene("observed: {keep: 2h}")
    sweeps = Sweeps(scene)
    began = scene.world.now
    sweeps.passes()
    for instance in range(3):
        scene.announces(instance, in_minutes=20)
        sweeps.passes(60)

    assert [(one.since, one.until) for one in sweeps.cluster.stretches] == [(began, None)]
    assert len(sweeps.cluster.cases) == 2


def test_passes_of_another_mode_end_the_time_when_sweeps_have_observed_last() -> None:
    scene = Scene()
    sweeps = Sweeps(scene)
    sweeps.passes()
    scene.announces(0, in_minutes=10)
    sweeps.passes(20)
    (case,) = sweeps.cluster.cases
    scene.world.advance(minutes(60))
    acted = scene.world.now
    scene.world.advance(minutes(60))
    plan = scene.passes()
    sweeps.after(replace(plan, reconciler=replace(plan.reconciler, last_pass=acted)))
    sweeps.passes()

    first, second = sweeps.cluster.stretches
    assert first.until == case.over
    assert second == Stretch(plan.now)
