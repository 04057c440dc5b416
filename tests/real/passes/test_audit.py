"""Who did what: `serve` with the rights of the manifests, people with theirs, `history` without a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.model.keys import keys_of
from reconciler.model.sayings import DEED
from tests.real.manifests.applying import applied, built
from tests.real.passes.accounts import account, once_permitted
from tests.real.passes.processes import Object, Programs, Running
from tests.real.passes.scene import PREFIX, Scene, cover
from tests.support.controlplane.processes import wait_for

pytestmark = pytest.mark.slow

SYSTEM = "node-maintenance"
SETTINGS = "mode: Enforce\nuncordon: {settle: 0s}\nbudget: {maxUnavailable: 100%}\n"
PERSON = "system:serviceaccount:default:operator"
RIGHTS = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    # The ledger keeps who releases all nodes.
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]},
]


@contextmanager
def serving(programs: Programs, kubeconfig: Path) -> Iterator[Running]:
    served = programs.start("serve", "--every", "1s", kubeconfig=kubeconfig)
    try:
        yield served
    finally:
        served.terminate()


def test_what_people_do_is_kept_once_with_the_rights_of_the_manifests(
    scene: Scene, programs: Programs
) -> None:
    (role,) = built("report")
    config = str(programs.configure(SETTINGS))
    held, drained = scene.node(0), scene.node(1)
    with (
        applied(scene.controlplane, "base"),
        applied(scene.controlplane, "report"),
        account(scene, role["metadata"]["name"]) as reader,
        account(scene, "operator", RIGHTS) as person,
    ):
        wait_for("the account", lambda: scene.api.find("serviceaccounts", "reconciler", SYSTEM))
        ours = scene.controlplane.kubeconfig_for("reconciler", SYSTEM)

        def audit(*arguments: str) -> list[Object]:
            asked = once_permitted(
                lambda: programs.run("history", "--audit", "-o", "json", *arguments, kubeconfig=reader)
            )
            rows: list[Object] = asked.document["audit"]
            return rows

        def does(*command: str) -> None:
            done = once_permitted(lambda: programs.run(*command, kubeconfig=person))
            assert done.code == 0, done.err

        with serving(programs, ours) as first:
            does("hold", held, "--reason", "=disk", "--config", config)
            (told,) = first.wait_for(DEED)
            assert (told["did"], told["by"], told["node"]) == ("held", PERSON, held)
            assert told["verified"]
        # Nobody makes passes now.
        does("resume", held, "--config", config)
        does("drain", drained, "--prefix", PREFIX)
        with serving(programs, ours) as second:
            second.wait_for(DEED, count=2)
            does("release", drained, "--prefix", PREFIX)
            does("request", held, "--kind", "Reboot", "--not-before", "30d", "--id", "CHG-7")
            second.wait_for(DEED, count=4)
            does("request", held, "--cancel")
            does("hold", drained)
            second.wait_for(DEED, count=6)
            does("release", "--all", "--prefix", PREFIX)
            second.wait_for(DEED, count=7)
        rows = audit()
        one = audit("--node", held)

    assert len(rows) == 8
    assert {(row["did"], row["node"], row["scope"], row["by"]) for row in rows} == {
        ("held", held, None, PERSON),
        ("held", drained, None, PERSON),
        ("resumed", held, None, PERSON),
        ("drained by hand", drained, None, PERSON),
        ("released", drained, None, PERSON),
        ("requested", held, None, PERSON),
        ("request cancelled", held, None, PERSON),
        ("released", None, "all", PERSON),
    }
    (why,) = (row["why"] for row in rows if row["did"] == "requested")
    assert "id CHG-7" in why
    assert [row["did"] for row in one] == ["held", "resumed", "requested", "request cancelled"]
    for node in (held, drained):
        annotations = scene.api.get("nodes", node)["metadata"].get("annotations", {})
        assert keys_of(PREFIX).said_before not in annotations


def test_the_cases_that_ended_are_in_the_cluster(scene: Scene, programs: Programs) -> None:
    node = scene.node(0)
    programs.configure(SETTINGS)
    scene.annotate(node, "request", '{"kind": "Reboot"}')
    programs.sweep("--for", "60s")
    scene.annotate(node, "request", None)
    programs.sweep("--for", "60s")

    found = programs.run("history", "--cases", "-o", "json").document
    (case,) = found["cases"]
    assert (case["node"], case["outcome"]) == (node, "drained")
    assert found["source"].startswith("the ConfigMap ")
    assert found["wholeFrom"]
    assert "1 case, ended" in programs.run("history").out


def test_the_time_for_which_a_budget_held_a_drain_is_kept_with_its_case(
    scene: Scene, programs: Programs
) -> None:
    node = scene.node(0)
    programs.configure(SETTINGS)
    scene.workload("web", node)
    cover(scene, "web")
    with serving(programs, programs.kubeconfig) as served:
        scene.annotate(node, "request", '{"kind": "Reboot"}')
        served.does("the cordon", lambda: scene.cordoned(node))
        # While the budget refuses the pod, the drainer watches it.
        served.does(
            "a watch", lambda: [one for one in scene.asked("watch") if one.resource == "poddisruptionbudgets"]
        )
        began = time.monotonic()
        served.does("seconds that count", lambda: time.monotonic() - began > 2)
        scene.api.delete("poddisruptionbudgets", "web", "default")
        served.does("the drain", lambda: not scene.pods_on(node))
        scene.annotate(node, "request", None)
        served.wait_for("case")
    (budget,) = programs.run("history", "--budgets", "-o", "json").document["budgets"]

    assert (budget["budget"], budget["cases"], budget["worstNode"]) == ("default/web", 1, node)
    assert 1 <= budget["heldSeconds"] < 60
