"""Without --config, a command asks about the policy that is installed; if there is none, it says so first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.reconciler import PASSES, Passes, passes_text
from reconciler.model.record import Record, to_annotation
from tests.jobs.stub_cluster import OF_SETTINGS, StubCluster, node, pod
from tests.support.builders import NOW
from tests.support.stub import Answer, Asked, json_answer, kubeconfig, status

pytestmark = pytest.mark.heavy

MAPS = "/api/v1/namespaces/{}/configmaps"
POLICY = "mode: Enforce\nkeys: {prefix: ours.example.com}\n"
THEIRS = "ours.example.com"
COMMANDS = {
    **OF_SETTINGS,
    "defer": ("defer", "n", "--until", "+2h"),
    "resume": ("resume", "n"),
    "approve": ("approve", "n", "--cancel"),
    "request": ("request", "n", "--kind", "Reboot"),
    "simulate": ("simulate", "--made-up", "7", "--nodes", "5", "--days", "2"),
}
OF_NO_NODES = ("simulate", "windows")
WITH_A_DOCUMENT = sorted(COMMANDS.keys() - {"request"})


class Cluster(StubCluster):
    """One node, and the ConfigMaps with settings by namespace and name, each the content of its key."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, node("n"))
        self.maps: dict[tuple[str, str], str] = {}
        self.forbidden = False
        self.leases: list[dict[str, Any]] = []

    def instead(self, asked: Asked) -> Answer | None:
        if self.forbidden and "/configmaps" in asked.path:
            return status(403, "Forbidden", "no")
        if asked.path == "/apis/coordination.k8s.io/v1/leases":
            return json_answer({"metadata": {}, "items": self.leases})
        return self.config_map(asked.path)

    def config_map(self, path: str) -> Answer | None:
        """The answer about ConfigMaps, None if it is about something else."""
        for (namespace, name), content in self.maps.items():
            found = {"metadata": {"name": name}, "data": {"maintenance.yaml": content}}
            if path == f"{MAPS.format(namespace)}/{name}":
                return json_answer(found)
            if path == MAPS.format(namespace):
                dashboard = {"metadata": {"name": "dashboard"}, "data": {"dashboard.json": "{}"}}
                each = [one for place, one in self._listed() if place == namespace]
                return json_answer({"metadata": {}, "items": [*each, dashboard]})
        return status(404, "NotFound", "nothing is here") if "/configmaps" in path else None

    def _listed(self) -> list[tuple[str, dict[str, Any]]]:
        return [
            (namespace, {"metadata": {"name": name}, "data": {"maintenance.yaml": content}})
            for (namespace, name), content in self.maps.items()
        ]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_without_a_policy_in_the_cluster_the_first_line_says_so_and_the_next_one_names_the_cluster(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cluster.run(*COMMANDS[command]) == 0
    first, second = capsys.readouterr().out.splitlines()[:2]
    expected = "default settings: no ConfigMap node-maintenance/maintenance-policy in the cluster"
    assert first == f"{expected}; pass --config"
    if command in OF_NO_NODES:
        assert second == "cluster one, context it"
    else:
        assert second == "reconciler: none has acted in this cluster yet · cluster one, context it"


@pytest.mark.parametrize("command", WITH_A_DOCUMENT)
def test_for_programs_the_line_is_on_stderr_and_in_the_document(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cluster.run(*COMMANDS[command], "--output", "json") == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    said = document["defaultSettings"]
    assert document["policy"] == {
        "source": "default settings",
        "hash": None,
        "mode": "Observe",
        "cluster": "one",
        "context": "it",
    }
    assert said.startswith("default settings: no ConfigMap node-maintenance/maintenance-policy")
    assert printed.err.splitlines()[0] == said


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_with_a_policy_in_the_cluster_it_applies_and_no_line_is_there(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = POLICY
    options = ("--output", "json") if command in WITH_A_DOCUMENT else ()
    assert cluster.run(*COMMANDS[command], *options) == 0
    printed = capsys.readouterr()
    assert "default settings" not in printed.out + printed.err
    if options:
        document = json.loads(printed.out)
        assert document["defaultSettings"] is None
        policy = document["policy"]
        assert policy["source"] == "configmap/node-maintenance/maintenance-policy/maintenance.yaml"
        assert (policy["mode"], len(policy["hash"])) == ("Enforce", 12)
    assert all(key.startswith(f"{THEIRS}/") for key in cluster.annotations())
    assert bool(cluster.annotations()) is (command in ("hold", "defer", "request"))


def test_the_mode_of_the_report_and_the_plan_is_that_of_the_cluster(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = POLICY
    for command in ("report", "plan"):
        assert cluster.run(command, "--output", "json") == 0
        document = json.loads(capsys.readouterr().out)
        assert (document["mode"], len(document["settings"]["hash"])) == ("Enforce", 12)


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"request"}))
def test_the_name_of_the_cluster_in_the_policy_is_in_each_output(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = f"cluster: aks-prod-weu\n{POLICY}"
    assert cluster.run(*COMMANDS[command]) == 0
    assert "cluster aks-prod-weu, context it" in " ".join(capsys.readouterr().out.split())
    assert cluster.run(*COMMANDS[command], "--output", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["policy"]["cluster"] == "aks-prod-weu"
    if command not in OF_NO_NODES:
        assert document["reconciler"]["cluster"] == "aks-prod-weu"


def test_the_policy_is_that_of_the_namespace_and_is_found_by_its_label_under_another_name(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = "mode: Enforce"
    cluster.maps["team", "team-policy"] = "mode: Finish"
    assert cluster.run("plan", "--reconciler-namespace", "team", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out)["mode"] == "Finish"

    cluster.maps["team", "another"] = "mode: Enforce"
    assert cluster.run("plan", "--reconciler-namespace", "team") == 2
    assert "configmap/team/team-policy, configmap/team/another; " in capsys.readouterr().err


def test_where_a_reconciler_runs_in_another_namespace_the_first_line_names_the_option_for_it(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    passes = Passes(last=datetime.now(UTC), apart=(timedelta(seconds=30),), mode="Enforce")
    cluster.leases.append(
        {
            "metadata": {
                "name": "reconciler-lock",
                "namespace": "ops",
                "annotations": {PASSES: passes_text(passes)},
            },
            "spec": {"holderIdentity": "reconciler-1"},
        }
    )

    assert cluster.run("plan") == 0
    first, second = capsys.readouterr().out.splitlines()[:2]
    where = "a reconciler runs in the namespace ops: pass --reconciler-namespace ops"
    assert f"; {where}; else pass --config" in first
    assert second.startswith(
        "reconciler: one runs in the namespace ops, and none in node-maintenance · cluster"
    )


def test_a_variable_names_the_namespace_once_for_all_commands(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = "mode: Enforce"
    cluster.maps["team", "maintenance-policy"] = "mode: Finish"
    monkeypatch.setenv("RECONCILER_NAMESPACE", "team")
    found = []
    for given in ((), ("--reconciler-namespace", "node-maintenance")):
        assert cluster.run("plan", "--output", "json", *given) == 0
        found.append(json.loads(capsys.readouterr().out)["mode"])

    assert found == ["Finish", "Enforce"]


@pytest.mark.parametrize("command", ["plan", "report", "explain"])
def test_a_namespace_of_workloads_changes_no_policy_and_shows_its_pods(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = POLICY
    cluster.maps["shop", "maintenance-policy"] = "mode: Finish"
    cluster.annotations()[f"{THEIRS}/request"] = '{"kind": "Redeploy"}'
    cluster.pods += [pod("shop", "web-0"), pod("team", "api-0")]
    name = ("web-0",) if command == "explain" else ()

    assert cluster.run(command, *name, "-n", "shop", "--output", "json") == 0
    document = json.loads(capsys.readouterr().out)

    assert document["policy"]["source"].startswith("configmap/node-maintenance/")
    assert document["mode"] == "Enforce"
    moves = [document["pod"]["move"]] if command == "explain" else document["pods"]
    assert [(move["pod"], move["node"], move["answer"]) for move in moves] == [("shop/web-0", "n", "moves")]
    assert cluster.run(command, *name, "-n", "shop") == 0
    text = capsys.readouterr().out
    assert "web-0 on n moves now" in text
    assert "api-0 on n" not in text


def test_only_nodes_that_run_pods_of_the_namespace_are_shown(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.nodes["other"] = node("other")
    for name in cluster.nodes:
        cluster.annotations(name)[f"{DEFAULT_PREFIX}/request"] = '{"kind": "Redeploy"}'
    cluster.pods += [pod("shop", "web-0"), pod("team", "api-0", "other")]

    assert cluster.run("plan", "-n", "shop", "--output", "json") == 0
    assert [case["name"] for case in json.loads(capsys.readouterr().out)["cases"]] == ["n"]
    assert cluster.run("report", "-n", "shop", "--output", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in document["nodes"]] == ["n"]
    assert document["filter"]["namespace"] == "shop"
    assert cluster.run("plan", "-n", "shopp") == 1
    assert "no node runs a pod of the namespace 'shopp'; did you mean shop?" in capsys.readouterr().err


def test_a_namespace_without_a_reconciler_is_not_answered_with_the_default_settings(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = "mode: Enforce"
    assert cluster.run("plan", "--reconciler-namespace", "shop") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "leave out --reconciler-namespace to ask the one in node-maintenance" in printed.err


def test_a_policy_that_may_not_be_read_is_named_with_the_missing_permission(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.forbidden = True
    assert cluster.run("plan") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("default settings: the ConfigMap node-maintenance/maintenance-policy may not be")
    assert (
        "(needs get configmaps in node-maintenance), so the reconciler may use others; pass --config" in first
    )


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_policy_with_a_mistake_is_an_error_that_says_what_to_change(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = "mode: Sometimes"
    assert cluster.run(*COMMANDS[command]) == 2
    place = "configmap/node-maintenance/maintenance-policy/maintenance.yaml:1:1: mode: "
    said = capsys.readouterr().err
    assert said.startswith(place)
    assert "`reconciler page` shows what it does; other commands take them with --config FILE" in said
    assert cluster.annotations() == {}


@pytest.mark.parametrize("command", ["report", "plan", "explain"])
def test_with_settings_that_nobody_can_use_commands_show_the_nodes_that_nobody_guards(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cluster.run(*COMMANDS["request"]) == 0
    capsys.readouterr()
    cluster.maps["node-maintenance", "maintenance-policy"] = "mode: Sometimes"
    assert cluster.run(*COMMANDS[command], "--output", "json") == 2
    document = json.loads(capsys.readouterr().out)

    assert document["defaultSettings"].startswith("default settings: the installed ones have a mistake")
    assert "settingsRejected" in json.dumps(document)
    assert cluster.run(*COMMANDS[command]) == 2
    text = " ".join(capsys.readouterr().out.split())
    assert "mode Enforce would start it" not in text
    assert "the settings have a mistake, and no earlier ones are known, so nobody acts on any node" in text


def test_a_variable_that_only_the_pod_has_keeps_no_person_from_an_answer(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLACK_HOOK", raising=False)
    cluster.maps["node-maintenance", "maintenance-policy"] = (
        "profiles:\n  instances:\n    notify:\n    - {type: slack, name: ops, config: "
        '{hook: "${SLACK_HOOK}", channel: ops, message: x}}\n'
    )
    assert cluster.run("plan") == 0
    assert "default settings" not in capsys.readouterr().out


def test_files_need_no_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "maintenance.yaml"
    config.write_text("timeZone: Europe/Berlin\n", encoding="utf-8")
    for command in (["windows", str(config)], ["simulate", "--config", str(config), "--made-up", "7"]):
        small = ["--nodes", "5", "--days", "2"] if command[0] == "simulate" else []
        assert main([*command, *small, "--kubeconfig", str(tmp_path / "missing")]) == 0
    assert "default settings" not in capsys.readouterr().out


def record_of_a_pass() -> str:
    return to_annotation(Record("uid-n"))


def a_hold(*, stops: bool) -> str:
    return hold_text(PersonHold(Word("alice@laptop", NOW, None, "disk copy"), stops))


@pytest.mark.parametrize("command", ["hold", "defer", "resume", "approve", "request"])
def test_what_no_reconciler_would_read_is_not_written(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    cluster.annotations()[f"{THEIRS}/record"] = record_of_a_pass()
    assert cluster.run(*COMMANDS[command]) == 2
    said = capsys.readouterr().err
    assert f"n has keys of {THEIRS}" in said
    assert "pass --config" in said
    assert cluster.annotations().keys() == {f"{THEIRS}/record"}


def test_beside_a_reconciler_with_this_prefix_another_one_is_no_matter(cluster: Cluster) -> None:
    cluster.annotations().update(
        {f"{THEIRS}/record": record_of_a_pass(), f"{DEFAULT_PREFIX}/record": record_of_a_pass()}
    )
    assert cluster.run("hold", "n") == 0
    assert f"{DEFAULT_PREFIX}/hold" in cluster.annotations()


def test_keys_of_other_programs_show_no_reconciler(cluster: Cluster) -> None:
    cluster.annotations().update(
        {f"{THEIRS}/record": "{}", f"{THEIRS}/hold": "true", "hold": "yes", f"{THEIRS}/state": "x"}
    )
    assert cluster.run("hold", "n") == 0
    assert cluster.run("resume", "n") == 0
    assert cluster.run("drain", "n") == 0


@pytest.mark.parametrize("stops", [True, False])
def test_a_drain_without_a_prefix_refuses_a_node_that_is_held_under_another_one(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], stops: bool
) -> None:
    cluster.annotations()[f"{THEIRS}/hold"] = a_hold(stops=stops)
    assert cluster.run("drain", "n") == 1
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("default prefix node-maintenance.dev: no ConfigMap node-maintenance/")
    words = "held by alice@laptop since 2026-11-21T12:00:00Z: disk copy; reconciler resume n"
    assert f"{words}, with the settings of keys.prefix {THEIRS}, ends that" in said
    assert cluster.nodes["n"]["spec"] == {}
    assert cluster.run("drain", "n", "--prefix", DEFAULT_PREFIX) == 1
    assert cluster.run("drain", "n", "--ignore-holds") == 0


def test_a_drain_uses_the_prefix_of_the_policy_of_the_cluster(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = POLICY
    # A person's text is a hold under the prefix of the settings.
    cluster.annotations()[f"{THEIRS}/hold"] = "disk copy"
    assert cluster.run("drain", "n") == 1
    assert "default" not in capsys.readouterr().err
    del cluster.annotations()[f"{THEIRS}/hold"]
    assert cluster.run("drain", "n") == 0
    assert cluster.annotations().keys() == {f"{THEIRS}/record", f"{THEIRS}/uid"}
    assert cluster.run("release", "n") == 0
    assert capsys.readouterr().out.endswith("n: released and uncordoned\n")


def test_a_policy_with_a_mistake_keeps_nobody_from_a_drain_with_a_prefix(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = "keys: {prefix: 7}\n"
    assert cluster.run("drain", "n") == 2
    assert capsys.readouterr().err.endswith("or name the prefix of the keys with --prefix\n")
    assert cluster.run("drain", "n", "--prefix", DEFAULT_PREFIX) == 0


def test_a_file_is_compared_with_the_policy_and_the_nodes_of_the_cluster(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = "mode: Enforce"
    file = tmp_path / "maintenance.yaml"
    file.write_text("mode: Enforce\nnodeSelector: {agentpol: pool0}\nevents: {Redeploy: {drain: false}}\n")

    assert cluster.run("check-config", str(file), "--strict") == 1
    said = capsys.readouterr().err
    assert "nodeSelector: selects none of the 1 node" in said
    assert "events.Redeploy.drain: is false, and was true" in said
    # Without a cluster nothing is compared.
    assert main(["check-config", str(file), "--strict"]) == 0


def effect(out: str) -> list[str]:
    """What `check-config` says of the numbers before and after."""
    lines = [line.strip() for line in out.splitlines()]
    return lines[next(place for place, line in enumerate(lines) if line.startswith("With ")) :]


def test_a_file_that_is_checked_says_what_it_changes_of_nodes_cases_and_misses(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = "mode: Enforce"
    cluster.nodes["late"] = node("late")
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    cluster.annotations()[f"{DEFAULT_PREFIX}/request"] = '{"kind": "Redeploy"}'
    cluster.annotations("late")[f"{DEFAULT_PREFIX}/request"] = json.dumps(
        {"kind": "Redeploy", "notBefore": tomorrow}
    )
    file = tmp_path / "maintenance.yaml"
    never = "{name: never, start: 2020-01-01, end: 2099-01-01, absolute: true}"
    file.write_text(f"mode: Enforce\nnotAllowed: [{never}]\n")
    assert cluster.run("check-config", str(file)) == 0
    assert effect(capsys.readouterr().out) == [
        "With configmap/node-maintenance/maintenance-policy/maintenance.yaml, and then with these settings",
        "nodes managed: 2 before, 2 after",
        "cases: 2 before, 2 after",
        "misses: 0 before, 1 after (late)",
    ]
    file.write_text("mode: Enforce\nnodeSelector: {pool: none}\n")
    assert cluster.run("check-config", str(file)) == 0
    assert effect(capsys.readouterr().out)[1:] == [
        "nodes managed: 2 before, 0 after",
        "cases: 2 before, 0 after",
        "misses: 0 before, 0 after",
        "unguarded nodes: 0 before, 2 after (late, n)",
    ]


def test_without_settings_to_compare_with_the_numbers_of_the_file_are_said(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "maintenance.yaml"
    file.write_text("mode: Enforce\n")
    assert cluster.run("check-config", str(file)) == 0
    first, *numbers = effect(capsys.readouterr().out)
    assert first.startswith("With these settings (not compared: no ConfigMap node-maintenance/")
    assert numbers == ["nodes managed: 1", "cases: 0", "misses: 0"]
    cluster.maps["node-maintenance", "maintenance-policy"] = "mode: Enforce\n"
    assert cluster.run("check-config", str(file)) == 0
    first = effect(capsys.readouterr().out)[0]
    assert first.startswith("With these settings (not compared: these are the settings in use")


def test_a_file_is_compared_with_the_cluster_that_the_environment_names_if_that_answers(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "maintenance.yaml"
    file.write_text("nodeSelector: {agentpol: pool0}\n")
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))

    assert main(["check-config", str(file)]) == 0
    said = capsys.readouterr()
    assert "In the cluster one, context it\n  0 of 1 node is managed.\n" in said.out
    assert "nodeSelector: selects none of the 1 node" in said.err

    cluster.close()
    code, said = main(["check-config", str(file), "--strict"]), capsys.readouterr()
    assert code == 0, said.err
    assert "In the cluster" not in said.out
    assert said.err.startswith(f"note: {file}: not compared with the nodes of the cluster: no answer from ")


def test_a_cluster_that_the_environment_names_is_not_signed_in_to_without_being_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/nowhere",
        "interactiveMode": "Never",
    }
    kubeconfig_file, file = tmp_path / "kubeconfig", tmp_path / "maintenance.yaml"
    kubeconfig_file.write_text(json.dumps(kubeconfig("https://127.0.0.1:1", {"exec": plugin})))
    file.write_text("mode: Enforce\n")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig_file))

    assert main(["check-config", str(file), "--strict"]) == 0
    said = "not compared with the nodes of the cluster that KUBECONFIG names; --context NAME does that"
    assert capsys.readouterr().err == f"note: {file}: {said}\n"


def test_a_node_that_the_policy_does_not_select_is_unguarded_in_every_output(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.maps["node-maintenance", "maintenance-policy"] = "mode: Enforce\nnodeSelector: {agentpol: pool0}"
    cluster.annotations()[f"{DEFAULT_PREFIX}/request"] = '{"kind": "Redeploy"}'

    found = {}
    for command in (("report",), ("plan",), ("explain", "n")):
        assert cluster.run(*command, "--output", "json") == 0
        found[command[0]] = json.loads(capsys.readouterr().out)
    rows = found["report"]["nodes"][0], found["plan"]["cases"][0], found["explain"]["node"]
    assert [row["unguarded"]["why"] for row in rows] == ["notSelected"] * 3
    assert any("n" in each["nodes"] for each in found["report"]["people"])
    assert found["explain"]["node"]["obstacles"][0]["code"] == "unguarded"

    for command in (("report",), ("plan",), ("explain", "n")):
        assert cluster.run(*command) == 0
        assert "UNGUARDED" in capsys.readouterr().out
