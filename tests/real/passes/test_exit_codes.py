"""How the program ends, and what it says: 0 done, 1 for some nodes, 2 settings, 3 API server, 4 missed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import yaml

from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.api import ApiError
from tests.support.controlplane.processes import free_ports
from tests.support.controlplane.webhooks import in_force


def test_0_on_an_empty_cluster(scene: Scene, programs: Programs) -> None:
    # As its users start it, in a fresh interpreter.
    programs.forks = None
    done = programs.run("sweep")

    assert done.code == 0, done.err
    assert "no node has an event, and none is in maintenance" in done.out


def test_1_when_something_failed_for_one_node_and_the_rest_was_done(scene: Scene, programs: Programs) -> None:
    programs.configure(f"{ENFORCE}budget: {{maxUnavailable: 2}}\n")
    refused, served = scene.node(0), scene.node(1)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    names = {"resourceNames": [refused]}
    policy = {
        "metadata": {"name": "hands-off"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{**rule, **names}]},
            "validations": [{"expression": "false", "message": "hands off"}],
        },
    }
    binding = {
        "metadata": {"name": "hands-off"},
        "spec": {"policyName": "hands-off", "validationActions": ["Deny"]},
    }
    for node in (refused, served):
        scene.condition_tells(node)

    with in_force(scene.api, policy, binding, lambda: _is_refused(scene, refused)):
        text = programs.run("sweep")
        later = programs.sweep()

    assert text.code == 1
    assert f"FAILED: {refused}: cordon: " in text.out
    # The next try comes after a pause, and a pass that only waits for it is no failure.
    assert later.code == 0
    (hold,) = [one for one in later.node(refused)["holds"] if one["check"] == "nodeWritable"]
    assert "hands off" in hold["reason"]
    assert not scene.cordoned(refused)
    assert scene.cordoned(served)


def _is_refused(scene: Scene, node: str) -> bool:
    # One write that always changes something: between two the policy might come into force.
    touched = {"test/touched": datetime.now(UTC).isoformat()}
    try:
        scene.api.patch("nodes", node, {"metadata": {"annotations": touched}})
    except ApiError as error:
        return "hands off" in str(error)
    return False


def test_2_when_the_settings_are_wrong_every_mistake_at_once_and_nothing_touched(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    scene.condition_tells(node)
    programs.forks = None
    programs.configure("mode: Enforced\nbudget: {maxUnavailable: -1}\nwindow: []\n")

    done = programs.run("sweep")

    assert done.code == 2
    assert done.out == ""
    lines = done.err.splitlines()
    assert [line.split(":")[1] for line in lines] == ["1", "2", "3"]
    assert all(str(programs.config) in line for line in lines)
    assert scene.is_untouched(node)


@pytest.mark.slow
def test_3_when_the_api_server_is_gone(programs: Programs) -> None:
    config = yaml.safe_load(programs.kubeconfig.read_text(encoding="utf-8"))
    # A port on which nobody listens answers as that of a server that has ended.
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_ports(1)[0]}"
    gone = programs.folder / "gone.kubeconfig"
    gone.write_text(yaml.safe_dump(config), encoding="utf-8")

    done = programs.run("sweep", kubeconfig=gone)

    assert done.code == 3
    assert done.out == ""
    assert "no connection" in done.err
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) == 1
