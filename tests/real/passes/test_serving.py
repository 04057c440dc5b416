"""`serve`: woken by changes, with new settings, without the API server, and ended by its supervisor."""

from __future__ import annotations

import json
from functools import partial

import pytest

from tests.real.forks import DEFAULTS
from tests.real.passes.processes import ENFORCE, Programs, Running
from tests.real.passes.scene import PREFIX, Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import budget, daemon_set

pytestmark = pytest.mark.slow

TRIES = 2
IMPATIENT = {
    "reconciler.kubernetes.lease:Lock.__init__": {"duration": 5, "renew_every": 0.5},
    **{
        f"reconciler.kubernetes.{function}": {"patience": 2}
        for function in ("objects:get", "objects:find", "wire.lists:list_all")
    },
}
"""Waits for a server that does not answer are shorter."""
ALL_AT_ONCE = f"{ENFORCE}budget: {{maxUnavailable: 100%}}\n"


def serving(programs: Programs, pod: dict[str, str] | None = None) -> Running:
    """A serving program that leads, and whose watch of nodes stands."""
    process = programs.start("serve", "--every", "1h", "--listen", "127.0.0.1:0", pod=pod)
    process.wait_for("leading")
    return process


def watches(scene: Scene) -> None:
    """Wait until a change of a node would be heard: until it has been, once."""
    probe = scene.node(90)
    scene.condition_tells(probe, "Preempt", minutes=1)
    wait_for("a cordon of the probe", lambda: scene.cordoned(probe), seconds=60)


def test_a_changed_node_is_cordoned_without_waiting_for_the_schedule(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(ALL_AT_ONCE)
    nodes = [scene.node(instance) for instance in range(TRIES)]
    serving(programs)
    watches(scene)

    # The schedule is hourly, so it never causes a cordon within a minute. `nox -s bench` measures the time.
    for node in nodes:
        scene.condition_tells(node, "Preempt", minutes=0.5)
        wait_for("a cordon", partial(scene.cordoned, node), seconds=60)


def test_an_agent_that_publishes_an_event_works_whatever_was_known_of_its_pod(
    scene: Scene, programs: Programs
) -> None:
    """kubelet says only later that a Pod is ready, and then nothing wakes a pass: Preempt has 30 seconds."""
    name = "node-maintenance-agent"
    if scene.api.find("namespaces", name) is None:
        scene.api.create_namespace(name)
    agents = daemon_set(name, namespace=name)
    # On no node, so that there is no agent that is ready.
    agents["spec"]["template"]["spec"]["nodeSelector"] = {"nowhere": "yes"}
    scene.api.create("daemonsets", agents)
    programs.configure(ALL_AT_ONCE)
    node = scene.node()
    scene.imds_tells(0)
    serving(programs)
    watches(scene)

    scene.imds_tells(0, scene.event(0, "Preempt", minutes=0.5))
    wait_for("a cordon", partial(scene.cordoned, node), seconds=30)


def test_a_node_that_keeps_changing_costs_a_pass_a_second_and_delays_no_other_node(
    scene: Scene, programs: Programs
) -> None:
    programs.configure(ALL_AT_ONCE)
    noisy, other = scene.node(0), scene.node(1)
    serving(programs)
    watches(scene)

    began = scene.clock.drainers.now()
    for number in range(200):
        # A label that a pass reads; of its values only "true" has a meaning.
        scene.api.patch("nodes", noisy, {"metadata": {"labels": {f"{PREFIX}/ignore": str(number)}}})
        if number == 100:
            scene.condition_tells(other, "Preempt", minutes=0.5)
    wait_for("a cordon", partial(scene.cordoned, other), seconds=60)

    lists = [one for one in scene.asked("list", since=began) if one.resource == "nodes" and not one.name]
    seconds = (scene.clock.drainers.now() - began).total_seconds()
    # The other node adds a pass for its event, one for our own cordon, and one for the end of its drain.
    assert len(lists) <= seconds + 6, "a flapping node must not start a pass for each change"


def test_a_whole_case_goes_by_without_the_schedule(scene: Scene, programs: Programs) -> None:
    programs.configure("mode: Enforce\nuncordon: {settle: 2s}\n")
    node = scene.node()
    scene.workload("web", node)
    serving(programs)

    scene.condition_tells(node)
    wait_for("the end of the drain", lambda: "done" in str(scene.record(node)), seconds=60)
    assert scene.pods_on(node) == []

    # Nothing changes on the cluster when the settle time is over: the plan itself says when to look again.
    scene.condition_silent(node)
    wait_for("the uncordon", lambda: scene.is_untouched(node), seconds=60)


def test_sigterm_in_mid_drain_ends_it_cleanly_and_the_next_process_goes_on(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.workload("web", node)
    scene.api.create("poddisruptionbudgets", budget("web", min_available=1))
    scene.condition_tells(node)
    first = serving(programs)
    wait_for("its cordon", lambda: scene.cordoned(node), seconds=60)

    done = first.terminate()

    assert done.code == 0, done.err
    assert first.said("ending")
    assert '"event": "ended"' in done.out.splitlines()[-1]
    assert done.err == ""
    lease = scene.api.get("leases", "reconciler-lock", "node-maintenance")
    assert not lease["spec"].get("holderIdentity")
    assert scene.cordoned(node)
    assert scene.pods_on(node) == ["web"]

    scene.api.delete("poddisruptionbudgets", "web", "default")
    assert programs.sweep().code == 0
    assert scene.pods_on(node) == []


def test_changed_settings_are_taken_at_once_and_wrong_ones_change_nothing(
    scene: Scene, programs: Programs
) -> None:
    programs.configure("mode: Observe\n")
    node = scene.node()
    scene.condition_tells(node)
    process = programs.start("serve", "--every", "1h")
    line = process.wait_for("node")[0]
    assert line["dryRun"] is True

    programs.configure("mode: Enforced\n")
    (trouble,) = process.wait_for("settings rejected; previous ones still apply")
    assert "mode" in trouble["because"]
    assert scene.is_untouched(node)

    programs.configure(ENFORCE)
    process.wait_for("settings loaded")
    wait_for("a cordon", lambda: scene.cordoned(node), seconds=60)

    programs.configure("mode: Observe\n")
    wait_for(
        "the lock given back",
        lambda: (
            not scene.api.get("leases", "reconciler-lock", "node-maintenance")["spec"].get("holderIdentity")
        ),
        seconds=60,
    )
    assert process.terminate().code == 0


def test_the_api_server_goes_and_comes_back_and_the_work_goes_on(scene: Scene, programs: Programs) -> None:
    node = scene.node()
    process = serving(programs, {DEFAULTS: json.dumps(IMPATIENT)})
    scene.controlplane.stop_apiserver()
    try:
        # A change of its settings wakes it; its schedule is an hour away.
        programs.configure(f"{ENFORCE}timeZone: Europe/Berlin\n")
        trouble = process.wait_for("pass failed", seconds=90)[0]
        assert trouble["because"].startswith(("Unreachable: ", "LockLost: "))
        # A leader that comes back after this time must acquire the lock again before it may write.
        process.does("loss of the lock", lambda: "is lost: not renewed" in process.everything())
    finally:
        scene.controlplane.start_apiserver()

    wait_for("a server that takes writes", lambda: scene.api.find("nodes", node), seconds=60)
    scene.condition_tells(node)

    wait_for("a cordon", lambda: scene.cordoned(node), seconds=90)
    assert process.terminate().code == 0
