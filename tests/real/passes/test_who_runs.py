"""Every command says first who acts on the nodes, and whether that is so now."""

from __future__ import annotations

import json

from reconciler.kubernetes.reconcilers import LOCK
from reconciler.model.reconciler import PASSES
from tests.real.passes.processes import Object, Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for


def who_runs(programs: Programs, command: str = "report", *names: str) -> Object:
    """What the document of a command says of it."""
    arguments = () if command in ("report", "plan") else ("--config", str(programs.config))
    found: Object = programs.run(command, *names, "--output", "json", *arguments).document["reconciler"]
    return found


def overdue(programs: Programs) -> None:
    """Run a reconciler with a pass a second, kill it, and wait until its passes are overdue."""
    leader = programs.start("serve", "--every", "1s")
    leader.wait_for("leading")
    wait_for("a pass", lambda: who_runs(programs)["state"] == "running", seconds=30)
    leader.kill()
    wait_for("an overdue pass", lambda: who_runs(programs)["state"] == "overdue", seconds=30)


def test_beside_a_dead_reconciler_nothing_is_promised_and_an_approval_is_written_with_a_warning(
    scene: Scene, programs: Programs
) -> None:
    programs.configure("mode: Enforce\nevents: {Reboot: {approval: true}}\n")
    overdue(programs)
    waits, starts = scene.node(0), scene.node(1)
    for node, kind in ((waits, "Reboot"), (starts, "Redeploy")):
        asked = programs.run("request", node, "--kind", kind, "--not-before", "+20m")
        assert asked.code == 0, asked.err
        assert asked.out.startswith("NO RECONCILER RUNS")

    report = programs.run("report", "--output", "json").document
    for name in (waits, starts):
        row = next(row for row in report["nodes"] if row["name"] == name)
        assert row["schedule"]["plannedStart"] is None
        assert "reconcilerRuns" in {hold["check"] for hold in row["holds"]}
        assert row["actions"] == []
    assert "START now" not in " ".join(programs.run("plan").out.split())
    explained = programs.run("explain", starts, "--config", str(programs.config)).out
    assert explained.startswith("NO RECONCILER RUNS")
    page = programs.run("report", "-o", "html").out
    assert "NO RECONCILER RUNS" in page
    assert "Nothing is wrong" not in page

    approved = programs.run("approve", "--all", "--config", str(programs.config))
    assert approved.code == 1
    assert approved.out.startswith("NO RECONCILER RUNS")
    assert f"\n{waits}: Reboot approved by " in approved.out
    held = programs.run("hold", starts, "--config", str(programs.config))
    assert (held.code, held.out.startswith("NO RECONCILER RUNS")) == (0, True)
    assert "node-maintenance.dev/hold" in scene.api.get("nodes", starts)["metadata"]["annotations"]


def test_a_reconciler_that_never_ran_runs_and_was_killed_is_told_apart(
    scene: Scene, programs: Programs
) -> None:
    scene.node()
    never = who_runs(programs)
    assert (never["state"], never["holder"], never["lastPass"]) == ("never", None, None)
    assert never["cluster"]
    assert programs.run("report").out.startswith("reconciler: none has acted in this cluster yet")

    leader = programs.start("serve", "--every", "1s")
    leader.wait_for("leading")
    wait_for("its first pass", lambda: who_runs(programs)["lastPass"], seconds=30)
    runs = who_runs(programs)
    assert (runs["state"], runs["mode"], runs["intervalSeconds"]) == ("running", "Enforce", 1)
    assert str(leader.pid) in runs["holder"]
    assert programs.run("plan").out.startswith("reconciler: runs, last pass ")

    leader.kill()
    wait_for("an overdue pass", lambda: who_runs(programs)["state"] == "overdue", seconds=30)
    for command in ("report", "plan"):
        assert programs.run(command).out.startswith("NO RECONCILER RUNS: the last pass ended at ")
    assert who_runs(programs, "readiness")["state"] == "overdue"


def test_sweeps_of_a_cron_job_are_overdue_by_the_distance_that_they_had(
    scene: Scene, programs: Programs
) -> None:
    scene.node()
    swept = programs.run("sweep")
    assert (swept.code, swept.out.startswith("reconciler: runs, last pass ")) == (0, True)
    once = who_runs(programs)
    assert (once["state"], once["holder"]) == ("unknown", None)
    assert programs.sweep().code == 0
    assert who_runs(programs)["state"] == "running"
    lease = scene.api.get("leases", LOCK, "node-maintenance")
    said = json.loads(lease["metadata"]["annotations"][PASSES])
    assert said["apart"][0] >= 1

    wait_for("an overdue pass", lambda: who_runs(programs)["state"] == "overdue", seconds=60)


def test_a_reconciler_that_turns_to_observe_is_not_called_dead(scene: Scene, programs: Programs) -> None:
    scene.node()
    leader = programs.start("serve", "--every", "1s")
    leader.wait_for("leading")
    programs.configure("mode: Observe\n")
    wait_for("the lock", lambda: not who_runs(programs)["holder"], seconds=30)

    wait_for("a look", lambda: who_runs(programs)["state"] == "unknown", seconds=30)
    assert "takes no lock" in who_runs(programs)["because"]
