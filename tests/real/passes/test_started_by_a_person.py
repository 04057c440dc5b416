"""`start` as a process, with the rights of a person who may patch nodes: from the start to the uncordon."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import Done, Programs
from tests.real.passes.scene import PREFIX, Scene

pytestmark = pytest.mark.slow

CLOSED = """\
mode: Enforce
windows: [{name: leap, schedule: "0 3 29 2 *", duration: 1h}]
events: {Reboot: {approval: true}}
budget: {maxUnavailable: 0}
uncordon: {settle: 0s}
"""
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


def test_a_release_takes_a_start_away_and_names_it(scene: Scene, programs: Programs) -> None:
    config = str(programs.configure(CLOSED))
    name = scene.node(0)
    scene.condition_tells(name, minutes=300)
    assert programs.run("start", name, "--yes", "--config", config).code == 0

    released = programs.run("release", name)

    assert "released, without its start" in released.out
    assert f"{PREFIX}/start" not in scene.api.get("nodes", name)["metadata"].get("annotations", {})
