"""Who only looks writes nothing at all, and who has nothing to do writes nothing but the lock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.workloads import budget

# Taken by an update, then renewed as often as the time asks for it, and given back.
LOCK = {("patch", "leases")}
MUTATING = {"create", "update", "patch", "delete", "deletecollection"}


def asked(scene: Scene, since: datetime) -> list[AuditEntry]:
    """What we asked the server since then; there is something, or the user agent is wrong."""
    entries = scene.asked(since=since)
    assert entries
    return entries


def writes(scene: Scene, since: datetime) -> list[tuple[str, str]]:
    return [(entry.verb, entry.resource) for entry in asked(scene, since) if entry.verb in MUTATING]


def busy(scene: Scene) -> tuple[str, str]:
    """A node to be drained, and one whose event has gone."""
    draining, ended = scene.node(0), scene.node(1)
    scene.workload("web", draining)
    scene.api.create("poddisruptionbudgets", budget("web", min_available=1))
    scene.set("budget: {maxUnavailable: 3}")
    scene.condition_tells(ended)
    scene.finish()
    scene.condition_silent(ended)
    scene.condition_tells(draining)
    return draining, ended


@pytest.mark.parametrize(
    ("command", "settings", "kept"),
    [
        pytest.param(("sweep", "--dry-run"), ENFORCE, set(), id="sweep --dry-run"),
        pytest.param(("sweep",), "mode: Observe\n", {("create", "configmaps")}, id="sweep in mode Observe"),
        pytest.param(("report", "-o", "wide"), ENFORCE, set(), id="report"),
    ],
)
def test_a_dry_run_writes_nothing_and_takes_no_lock_nor_does_mode_observe_but_for_what_features_keep(
    scene: Scene, programs: Programs, command: tuple[str, ...], settings: str, kept: set[tuple[str, str]]
) -> None:
    draining, _ = busy(scene)
    programs.configure(f"{settings}budget: {{maxUnavailable: 3}}\n")
    began = datetime.now(UTC)

    done = programs.run(*command)

    assert done.code == 0, done.err
    assert draining in done.out
    assert "cordon" in done.out
    assert set(writes(scene, began)) <= kept
    # Who makes passes is read; the lock is not taken.
    assert {entry.verb for entry in asked(scene, began) if entry.resource == "leases"} <= {"get", "list"}
    assert scene.api.find("leases", "reconciler-lock", "node-maintenance") is None
    assert not scene.cordoned(draining)


def test_the_second_pass_writes_nothing_but_its_lock(scene: Scene, programs: Programs) -> None:
    draining, _ = busy(scene)
    scene.api.delete("poddisruptionbudgets", "web", "default")
    programs.configure("mode: Enforce\nbudget: {maxUnavailable: 3}\nuncordon: {settle: 1h}\n")
    assert programs.sweep().code == 0
    assert scene.pods_on(draining) == []
    began = datetime.now(UTC)

    done = programs.sweep()

    assert done.code == 0
    assert set(writes(scene, began)) == LOCK
    assert done.document["outcomes"] == []


def test_nothing_to_do_needs_no_request_per_node(scene: Scene, programs: Programs) -> None:
    for instance in range(5):
        scene.node(instance)
    assert programs.sweep().code == 0
    began = datetime.now(UTC)

    assert programs.sweep().code == 0

    # The lock is renewed as often as the time asks for it.
    assert len([entry for entry in asked(scene, began) if entry.resource != "leases"]) <= 5
