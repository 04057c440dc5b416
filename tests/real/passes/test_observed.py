"""`serve` and `sweep` in mode Observe with the rights of the manifests: what they keep, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.runtime.environment import Target
from reconciler.features.observed.cases import OBSERVED_CASES, Fate, Kept, ObservedCase
from reconciler.features.observed.lines import read_files
from reconciler.kubernetes.kept_lines import KeptInCluster
from tests.real.manifests.applying import applied, built
from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import budget

pytestmark = pytest.mark.slow

SYSTEM = Target().namespace
KEPT = "configmaps/node-maintenance-observed"
MUTATING = {"create", "update", "patch", "delete", "deletecollection"}


def lines(scene: Scene) -> tuple[Kept, ...]:
    """What is kept."""
    kept = KeptInCluster(OBSERVED_CASES, scene.connection, SYSTEM).read()
    return kept.lines if kept is not None else ()


def cases(scene: Scene) -> dict[str, ObservedCase]:
    """What is kept of the nodes."""
    return {line.node: line for line in lines(scene) if isinstance(line, ObservedCase)}


def writes(scene: Scene, since: datetime) -> list[tuple[str, str]]:
    """What was written since then: the verb, and the kind of the object with its name."""
    return [
        (entry.verb, f"{entry.resource}/{entry.name}")
        for entry in scene.asked(since=since)
        if entry.verb in MUTATING and entry.resource not in ("subjectaccessreviews", "selfsubjectreviews")
    ]


def test_what_would_have_been_done_is_kept_with_no_other_write_and_shown_to_who_may_read_it(
    scene: Scene, programs: Programs
) -> None:
    free, full = scene.node(0), scene.node(1)
    scene.workload("web", free)
    scene.workload("ledger", full)
    scene.api.create("poddisruptionbudgets", budget("ledger", min_available=1))
    programs.configure("mode: Observe\nbudget: {maxUnavailable: 2}\n")
    (role,) = built("report")
    with (
        applied(scene.controlplane, "base"),
        applied(scene.controlplane, "report"),
        account(scene, role["metadata"]["name"]) as reader,
    ):
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        began = datetime.now(UTC)
        kubeconfig = scene.controlplane.kubeconfig_for("reconciler", SYSTEM)
        serving = programs.start("serve", "--every", "1s", kubeconfig=kubeconfig)
        serving.does("the first write", lambda: lines(scene))
        for node in (free, full):
            scene.condition_tells(node, minutes=10)
        serving.does("both cases", lambda: len(cases(scene)) == 2)
        announced = cases(scene)
        for node in (free, full):
            scene.condition_tells(node, status="Started", minutes=10)
        serving.does("the start", lambda: all(case.struck for case in cases(scene).values()))
        for node in (free, full):
            scene.condition_silent(node)
        said = serving.wait_for("observed", count=2)
        ended = serving.terminate()
        asked = ("history", "--observed", "--config", str(programs.config))
        shown = once_permitted(lambda: programs.run(*asked, "-o", "json", kubeconfig=reader))
        text = programs.run(*asked, kubeconfig=reader)
        written = writes(scene, began)

    assert ended.code == 0
    assert {name for _, name in written} == {KEPT}
    kept = cases(scene)
    assert (kept[free].fate, announced[free].fate) == (Fate.IN_TIME, Fate.IN_TIME)
    assert (kept[full].fate, kept[full].stays) == (Fate.BLOCKED, ("PDB default/ledger",))
    assert (kept[free].pods, kept[full].pods) == (1, 1)
    assert {(line["node"], line["fate"]) for line in said} == {(free, "in time"), (full, "blocked")}
    assert all(case.over for case in kept.values())

    assert (shown.code, text.code) == (0, 0)
    document = shown.document
    assert {case["node"]: case["fate"] for case in document["cases"]} == {free: "in time", full: "blocked"}
    steps = {step["title"]: step for step in document["steps"]}
    assert steps["Nothing keeps a drain from its end"]["done"] is False
    assert steps["Nothing keeps a drain from its end"]["todo"] == ["reconciler readiness"]
    assert "2 nodes were announced; 1 would have been drained in time, 1 blocked by PDB default/ledger" in (
        " ".join(text.out.split())
    )
    assert "[ ] Enforce on all nodes: the mode is Observe" in text.out


def test_sweeps_go_on_where_the_last_one_ended_and_write_at_most_once_each(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    free, full = scene.node(0), scene.node(1)
    scene.workload("web", free)
    scene.workload("ledger", full)
    scene.api.create("poddisruptionbudgets", budget("ledger", min_available=1))
    programs.configure("mode: Observe\nbudget: {maxUnavailable: 2}\n")
    history = tmp_path / "history.jsonl"
    with applied(scene.controlplane, "base"):
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        kubeconfig = scene.controlplane.kubeconfig_for("reconciler", SYSTEM)

        def swept(*options: str) -> list[tuple[str, str]]:
            """What a sweep writes."""
            began = datetime.now(UTC)
            done = programs.sweep("--history", str(history), *options, kubeconfig=kubeconfig)
            assert (done.code in (0, 4), done.err) == (True, "")
            return writes(scene, began)

        made = [swept("--dry-run"), swept()]
        for node in (free, full):
            scene.condition_tells(node, minutes=10)
        made += [swept("--dry-run"), swept(), swept()]
        for node in (free, full):
            scene.condition_tells(node, status="Started", minutes=10)
        made += [swept()]
        for node in (free, full):
            scene.condition_silent(node)
        made += [swept(), swept()]

    create, patch = [("create", KEPT)], [("patch", KEPT)]
    assert made == [[], create, [], patch, [], patch, patch, []]
    kept = cases(scene)
    assert {node: case.fate for node, case in kept.items()} == {free: Fate.IN_TIME, full: Fate.BLOCKED}
    assert [(case.pods, case.over is not None) for case in kept.values()] == [(1, True), (1, True)]
    told, broken = read_files((history,))
    assert ({case.node for case in told}, broken) == ({free, full}, 0)
