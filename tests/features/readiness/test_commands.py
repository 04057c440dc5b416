"""`reconciler readiness`: the settings it uses, its exit codes, and what it may not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.cli import main
from tests.support.stub import Answer, Asked, Stub, json_answer, status

LISTS = {
    "/api/v1/nodes": "NodeList",
    "/api/v1/pods": "PodList",
    "/apis/policy/v1/poddisruptionbudgets": "PodDisruptionBudgetList",
    "/api/v1/namespaces": "NamespaceList",
    "/api/v1/persistentvolumes": "PersistentVolumeList",
}
NODE = {
    "metadata": {"name": "a", "uid": "1", "labels": {}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
OWNER = {"kind": "StatefulSet", "name": "db", "apiVersion": "apps/v1", "uid": "2", "controller": True}
POD = {
    "metadata": {
        "name": "db-0",
        "namespace": "shop",
        "uid": "3",
        "labels": {"app": "db"},
        "ownerReferences": [OWNER],
    },
    "spec": {"nodeName": "a", "volumes": [{"emptyDir": {}}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
BUDGET = {
    "metadata": {"name": "db", "namespace": "shop"},
    "spec": {"selector": {"matchLabels": {"app": "db"}}},
    "status": {"disruptionsAllowed": 0, "desiredHealthy": 1, "currentHealthy": 1, "expectedPods": 1},
}
LEDGER = "/api/v1/namespaces/node-maintenance/configmaps/node-maintenance-ledger"
ITEMS = {"NodeList": [NODE], "PodList": [POD], "PodDisruptionBudgetList": [BUDGET]}

Run = Callable[..., int]


@pytest.fixture
def forbidden() -> set[str]:
    """The paths that may not be listed."""
    return set()


@pytest.fixture
def ledger() -> dict[str, str]:
    """The data of the ledger."""
    return {}


@pytest.fixture
def run(tmp_path: Path, forbidden: set[str], ledger: dict[str, str]) -> Iterator[Run]:
    """Run the command against a server with one node, one pod and one budget."""

    def answer(asked: Asked) -> Answer:
        if asked.path == LEDGER and LEDGER not in forbidden:
            return json_answer({"kind": "ConfigMap", "metadata": {"name": "ledger"}, "data": ledger})
        if asked.path not in LISTS or asked.path in forbidden:
            return status(403, "Forbidden", "no")
        kind = LISTS[asked.path]
        meta = {"resourceVersion": "1"}
        return json_answer({"kind": kind, "apiVersion": "v1", "items": ITEMS.get(kind, []), "metadata": meta})

    stub = Stub(answer)
    kubeconfig = stub.write_kubeconfig(tmp_path / "kubeconfig")
    yield lambda *arguments: main(["readiness", "--kubeconfig", str(kubeconfig), *arguments])
    stub.close()


def settings(tmp_path: Path, text: str) -> str:
    file = tmp_path / "maintenance.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_the_settings_decide_which_pods_stay(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--output", "json") == 0
    kept = json.loads(capsys.readouterr().out)
    evict = settings(tmp_path, "events: {Reboot: {emptyDir: Evict}}")
    assert run("--output", "json", "--config", evict) == 0
    evicted = json.loads(capsys.readouterr().out)

    found = [[one["code"] for one in each["workloads"][0]["findings"]] for each in (kept, evicted)]
    assert found == [["emptyDir"], ["budgetNever", "noRoom", "singleton"]]
    assert (kept["settings"], evicted["blockedNodes"]) == (None, ["a"])


def test_a_namespace_limits_what_is_found_and_what_strict_fails_for(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evict = settings(tmp_path, "events: {Reboot: {emptyDir: Evict}}")
    answers = {}
    for namespace, code in (("shop", 1), ("team", 0)):
        assert run("--strict", "-n", namespace, "-o", "json", "--config", evict) == code
        document = json.loads(capsys.readouterr().out)
        answers[namespace] = (document["blockedNodes"], len(document["workloads"]), document["notes"][-1])

    said = "only the workloads of the namespace {} are shown"
    assert answers == {"shop": (["a"], 1, said.format("'shop'")), "team": ([], 0, said.format("'team'"))}


def test_strict_exits_with_1_only_if_something_would_stop_a_drain(run: Run, tmp_path: Path) -> None:
    evict = settings(tmp_path, "events: {Reboot: {emptyDir: Evict}}")

    assert run("--strict") == 0
    assert run("--config", evict) == 0
    assert run("--strict", "--config", evict) == 1
    assert run("--strict", "--selector", "!pool") == 0


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/v1/pods", 1),
        ("/apis/policy/v1/poddisruptionbudgets", 1),
        ("/api/v1/namespaces", 0),
        ("/api/v1/persistentvolumes", 0),
        (LEDGER, 0),
    ],
)
def test_what_may_not_be_read_is_said_and_strict_fails_where_it_could_stop_a_drain(
    run: Run, forbidden: set[str], path: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    forbidden.add(path)

    assert run("--strict") == code
    assert "could not see: " in capsys.readouterr().out
    assert run() == 0


def test_holds_of_all_nodes_are_listed_and_do_not_fail_a_strict_job(
    run: Run, ledger: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    ledger["holds"] = '[{"by": "alice@laptop", "scope": "all"}]'

    assert run("--strict", "--output", "json") == 0
    (people,) = json.loads(capsys.readouterr().out)["people"]
    assert (people["because"], people["nodeNames"]) == ("held by alice@laptop", ["a"])


def test_webhooks_are_asked_only_on_request_and_a_missing_permission_is_said(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evict = settings(tmp_path, "events: {Reboot: {emptyDir: Evict}}")
    run("--config", evict)
    assert "webhook" not in capsys.readouterr().out
    run("--config", evict, "--ask-webhooks")

    shown = capsys.readouterr().out
    assert "could not see: the answers of admission webhooks (needs create pods/eviction in shop)" in shown


def test_a_selector_that_matches_no_node_is_no_success_of_a_strict_job(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--strict", "--selector", "pool=misspelt") == 1
    assert capsys.readouterr().out.splitlines()[2] == "no node was judged"
    assert run("--selector", "pool=misspelt") == 0


def test_nodes_that_may_not_be_listed_are_an_error(
    run: Run, forbidden: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    forbidden.add("/api/v1/nodes")

    assert run() == 3
    assert "GET /api/v1/nodes: 403" in capsys.readouterr().err


def test_markdown_is_for_a_ticket(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--output", "markdown") == 0
    assert "\n# Readiness for maintenance\n\n**0 of 1 node would not drain; " in capsys.readouterr().out
