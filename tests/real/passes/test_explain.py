"""`reconciler explain`, typed by a person who wonders about a node and a pod."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import ENFORCE, Done, Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_drains import EMPTY_DIR, cover
from tests.real.passes.test_request import ask
from tests.real.passes.test_writing_nothing import writes

pytestmark = pytest.mark.slow

CLOSED = f"{ENFORCE}windows: [{{name: long-ago, start: 2020-01-01, end: 2020-01-02}}]\n"
ONLY_NODES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]


def explain(programs: Programs, *arguments: str) -> Done:
    return programs.run("explain", *arguments, "--config", str(programs.config))


def test_a_node_and_its_pods_are_explained_and_nothing_is_written(scene: Scene, programs: Programs) -> None:
    node, quiet = scene.node(0), scene.node(1)
    (web,) = scene.workload("web", node)
    (cache,) = scene.workload("cache", node, volumes=EMPTY_DIR)
    cover(scene, "web")
    programs.configure(CLOSED)
    assert ask(programs, node, "--kind", "Reboot", "--id", "CHG-42").code == 0
    began = datetime.now(UTC)

    of_node = explain(programs, node, "--output", "json")
    of_web = explain(programs, f"default/{web}")
    of_cache = explain(programs, f"default/{cache}", "--output", "json")
    of_quiet = explain(programs, quiet)

    assert (of_node.code, of_web.code, of_cache.code, of_quiet.code) == (0, 0, 0, 0), of_web.err
    found = of_node.document["node"]
    assert {one["source"]: one["answer"] for one in found["readings"]}["request"] == "event"
    assert {one["code"] for one in found["obstacles"]} == {"windowOpen", "budget", "pod"}
    assert {one["action"] for one in found["drainNow"]["pods"]} == {"evict", "keep"}
    assert f"default/{web} on {node}: a drain of its node can't evict it now" in of_web.out
    assert "  owner     Deployment default/web\n" in of_web.out
    assert "  now       refused: PodDisruptionBudget default/web requires 1 healthy pod" in of_web.out
    assert "set events.Reboot.emptyDir: Evict" in of_cache.document["pod"]["reasons"][0]
    assert "  event     none: no source announces maintenance of this node\n" in of_quiet.out
    assert "  drain     a drain for a Reboot now would find no pod\n" in of_quiet.out
    assert writes(scene, began) == []


def test_with_the_right_to_list_nodes_alone_the_rest_is_listed_as_not_seen(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node()
    with account(scene, "only-nodes", ONLY_NODES) as kubeconfig:
        of_node = once_permitted(lambda: programs.run("explain", node, kubeconfig=kubeconfig))
        of_pod = programs.run("explain", "default/web", kubeconfig=kubeconfig)

    assert of_node.code == 0, of_node.err
    assert "could not see: the pods (needs list pods)" in of_node.out
    assert "what a drain would do is not known" in of_node.out
    assert of_node.out.startswith(
        "default settings: the ConfigMap node-maintenance/maintenance-policy may not"
    )
    assert (of_pod.code, "'default/web' can't be explained: needs list pods" in of_pod.err) == (1, True)
