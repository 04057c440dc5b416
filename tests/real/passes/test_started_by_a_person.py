"""`start` as a process, with the rights of a person who may patch nodes: from the start to the uncordon."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import Done, Programs
from tests.real.passes.scene import PREFIX, Scene
from tests.real.passes.test_killed import Lane, killed_at_each_write
from tests.support.fakes.proxy import Cut, Proxy

pytestmark = pytest.mark.slow

CLOSED = """\
mode: Enforce
windows: [{name: leap, schedule: "0 3 29 2 *", duration: 1h}]
events: {Reboot: {approval: true}}
budget: {maxUnavailable: 0}
uncordon: {settle: 0s}
"""
STARTED = "MaintenanceStartedByPerson"
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
TIME_IN_ZONE = re.compile(r"\w{3} \d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})? UTC")
RIGHTS = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
]


def test_a_start_now_drains_at_once_and_ends_like_any_case(scene: Scene, programs: Programs) -> None:
    scene.set(CLOSED)
    config = str(programs.configure(CLOSED))
    name = scene.node(0)
    scene.workload("web", name)
    scene.condition_tells(name, minutes=300)
    assert {"approved", "windowOpen"} <= scene.run().holds(name).keys()
    late = programs.run("explain", name, "--config", config)
    assert "WILL BE MISSED" in late.out
    assert f"reconciler start {name} --now" in late.out

    with account(scene, "starter", RIGHTS) as kubeconfig:
        why = ("--reason", "disk fails", "--config", config, "--yes")
        done = once_permitted(lambda: programs.run("start", name, "--now", *why, kubeconfig=kubeconfig))
    assert done.code == 0, done.err
    assert "its drain begins with the next pass" in " ".join(done.out.split())
    assert "system:serviceaccount:default:starter" in done.out

    scene.run()
    assert scene.cordoned(name)
    scene.finish()
    assert scene.pods_on(name) == []
    explained = programs.run("explain", name, "--config", config)
    assert "started by" in explained.out
    assert "disk fails" in explained.out
    scene.condition_silent(name)
    scene.run()
    scene.run()

    assert not scene.cordoned(name)
    annotations = scene.api.get("nodes", name)["metadata"].get("annotations", {})
    assert not [key for key in annotations if key.startswith(f"{PREFIX}/")]


def test_two_people_at_once_get_one_start(scene: Scene, programs: Programs) -> None:
    config = str(programs.configure(CLOSED))
    name = scene.node(0)
    scene.condition_tells(name, minutes=300)

    def asks(reason: str) -> Done:
        return programs.run("start", name, "--now", "--yes", "--reason", reason, "--config", config)

    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(asks, ("first", "second")))

    assert [(answer.code, answer.err) for answer in answers] == [(0, ""), (0, "")]
    already = [answer for answer in answers if "started already by" in answer.out]
    assert len(already) == 1
    written = scene.api.get("nodes", name)["metadata"]["annotations"][f"{PREFIX}/start"]
    assert ("first" in written) is ("started already by" in answers[1].out)


def test_killed_at_any_write_a_start_that_is_asked_for_again_comes_to_the_same(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    config = programs.configure(CLOSED)

    def starts(name: str, cut: Cut | None = None) -> list[str]:
        """Ask for a start, which is killed at the cut; the writes that it tried."""
        with Proxy(programs.kubeconfig, cut) as proxy:
            through = proxy.write_kubeconfig(tmp_path / f"{name}.kubeconfig")
            asked = ("start", name, "--now", "--yes", "--reason", "disk fails")
            process = programs.start(*asked, kubeconfig=through, config=config)
            proxy.ends(process.kill)
            done = process.wait()
        assert done.code == (0 if cut is None else -9), (cut, done.err)
        return proxy.writes

    def left(name: str) -> tuple[str, list[str]]:
        """The annotation, and the messages of the Events about it; times and UIDs aside."""
        metadata = scene.api.get("nodes", name)["metadata"]
        text = TIME.sub("<time>", metadata["annotations"][f"{PREFIX}/start"]).replace(
            metadata["uid"], "<uid>"
        )
        events = [each for each in scene.api.list("events", "default") if each["reason"] == STARTED]
        told = [each["message"] for each in events if each["involvedObject"]["name"] == name]
        return text, [TIME_IN_ZONE.sub("<time>", message) for message in told]

    model = scene.node(0)
    scene.condition_tells(model, minutes=300)
    writes = starts(model)
    expected = left(model)
    assert "disk fails" in expected[0]
    assert len(expected[1]) == 1

    cuts = [Cut(1, before=True), *(Cut(number, before=False) for number in range(1, len(writes) + 1))]
    assert len(cuts) >= 3
    for number, cut in enumerate(cuts, 1):
        name = scene.node(number)
        scene.condition_tells(name, minutes=300)
        starts(name, cut)
        starts(name)
        assert left(name) == expected, str(cut)


def test_killed_at_any_write_the_next_sweep_of_a_start_ends_in_the_same_state(
    scene: Scene, programs: Programs, tmp_path: Path
) -> None:
    closed = (
        'windows: [{name: leap, schedule: "0 3 29 2 *", duration: 1h}]\nevents: {Reboot: {approval: true}}\n'
    )

    def started(lane: Lane) -> None:
        scene.condition_tells(lane.node, minutes=300)
        asked = ("start", lane.node, "--now", "--yes", "--reason", "disk fails")
        place = ("--config", str(lane.config), "--reconciler-namespace", lane.namespace)
        done = programs.run(*asked, *place)
        assert done.code == 0, done.err

    drained = killed_at_each_write(scene, programs, tmp_path, started, closed)
    assert "disk fails" in drained["ours"]["start"]


def test_a_release_takes_a_start_away_and_names_it(scene: Scene, programs: Programs) -> None:
    config = str(programs.configure(CLOSED))
    name = scene.node(0)
    scene.condition_tells(name, minutes=300)
    assert programs.run("start", name, "--yes", "--config", config).code == 0

    released = programs.run("release", name)

    assert "released, without its start" in released.out
    assert f"{PREFIX}/start" not in scene.api.get("nodes", name)["metadata"].get("annotations", {})
