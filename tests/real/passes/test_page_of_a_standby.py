"""The page is there whichever replica a person reaches, also while a settings file is rejected."""

from __future__ import annotations

import urllib3

from tests.real.passes.processes import Programs, Running
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for


def fetched(process: Running, path: str = "/") -> urllib3.BaseHTTPResponse:
    """What it answers at its address."""
    (line,) = process.wait_for("listening")
    return urllib3.request("GET", f"http://{line['address']}{path}", retries=False, timeout=30)


def page(process: Running, path: str = "/") -> tuple[int, str]:
    """The status and the text of this answer."""
    answer = fetched(process, path)
    return answer.status, answer.data.decode()


def test_a_replica_without_the_lock_shows_the_page_and_who_has_the_lock(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    asked = programs.run("request", node, "--kind", "Reboot", "--not-before", "+3h")
    assert asked.code == 0, asked.err
    leader = programs.start("serve", "--every", "1s", "--listen", "127.0.0.1:0")
    leader.wait_for("leading")
    wait_for("its page", lambda: page(leader)[0] == 200, seconds=30)
    standby = programs.start("serve", "--every", "1s", "--listen", "127.0.0.1:0")
    standby.wait_for("standing by")

    status, text = page(standby)
    assert (status, "<!doctype html>" in text, node in text) == (200, True, True)
    assert "reconciler: runs, last pass " in text
    assert " has the lock, mode Enforce" in text
    for process in (leader, standby):
        answer = fetched(process)
        assert answer.headers["Refresh"] == "15"
        assert '<b class="age">as of ' in answer.data.decode()


def test_the_page_and_readiness_stay_while_the_settings_are_rejected(
    scene: Scene, programs: Programs
) -> None:
    scene.node()
    leader = programs.start("serve", "--every", "1s", "--listen", "127.0.0.1:0")
    leader.wait_for("leading")
    wait_for("a pass", lambda: page(leader, "/readyz")[0] == 200, seconds=30)
    programs.configure("mode: Sometimes\n")
    leader.wait_for("settings rejected; previous ones still apply")

    wait_for("the mistake", lambda: "settings rejected at " in page(leader)[1], seconds=30)
    assert page(leader, "/readyz")[0] == 200


def test_a_start_without_usable_settings_says_which_nodes_nobody_guards_until_they_are_repaired(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.condition_tells(node)
    programs.configure("mode: Sometimes\n")
    started = programs.start("serve", "--every", "1s", "--listen", "127.0.0.1:0")
    (line,) = started.wait_for("settings rejected; there are no earlier ones")
    assert "mode: " in line["because"]

    wait_for("its page", lambda: page(started)[0] == 200, seconds=30)
    text = page(started)[1]
    assert "the settings have a mistake, so the default ones show what is announced" in text
    assert "no earlier ones are known, so nobody acts on any node" in text
    assert "Nothing is wrong" not in text
    assert page(started, "/healthz")[0] == 200
    status, reason = page(started, "/readyz")
    assert (status, f"unguarded nodes: {node}" in reason) == (503, True)
    metrics = page(started, "/metrics")[1].splitlines()
    [series] = [line for line in metrics if line.startswith("node_maintenance_unguarded{")]
    assert f'node="{node}"' in series
    assert 'why="settingsRejected"' in series
    assert "node_maintenance_settings_good 0.0" in metrics
    assert not scene.cordoned(node)

    programs.configure("mode: Enforce\nbudget: {maxUnavailable: 100%}\n")
    started.does("cordon", lambda: scene.cordoned(node), seconds=60)
    wait_for("readiness", lambda: page(started, "/readyz")[0] == 200, seconds=30)
    assert "settingsRejected" not in page(started, "/metrics")[1]


def test_a_typo_in_valid_settings_is_red_on_the_page_in_the_log_and_in_the_metrics(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    asked = programs.run("request", node, "--kind", "Redeploy", "--not-before", "+3h")
    assert asked.code == 0, asked.err
    leader = programs.start("serve", "--every", "1s", "--listen", "127.0.0.1:0")
    leader.wait_for("leading")
    wait_for("its page", lambda: page(leader)[0] == 200, seconds=30)
    programs.configure("mode: Enforce\nnodeSelector: {agentpol: pool0}\n")
    (less,) = leader.wait_for("settings guard less")

    assert (less["level"], "nodeSelector: selects none of the" in less["because"]) == ("warning", True)
    text = page(leader)[1]
    assert "Nothing is wrong" not in text
    assert "Nobody</p>" not in text
    assert "THE SETTINGS GUARD LESS THAN BEFORE" in text
    lines = page(leader, "/metrics")[1].splitlines()
    [series] = [line for line in lines if line.startswith("node_maintenance_unguarded{")]
    assert f'node="{node}"' in series
    assert 'why="notSelected"' in series

    # Every process says so, also one that has not seen the settings before.
    def reported() -> list[str]:
        found = programs.run("report", "--output", "json").document["reconciler"]["guardsLess"]
        return [str(each) for each in found]

    wait_for("the lock to say so", lambda: reported() == [less["because"]], seconds=30)
    assert "THE SETTINGS GUARD LESS THAN BEFORE" in programs.run("plan").out
    leader.kill()
    younger = programs.start("serve", "--every", "1s")
    (again,) = younger.wait_for("settings guard less", seconds=60)
    assert again["because"] == less["because"]
    programs.configure("mode: Enforce\n")
    younger.wait_for("settings loaded", count=2)
    wait_for("the repair to end it", lambda: reported() == [], seconds=30)
