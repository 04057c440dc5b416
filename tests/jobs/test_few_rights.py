"""People with few rights: what they may not do, what gives the right, and what they are told without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from jobs.runtime.environment import REPORT_ROLE
from tests.jobs.stub_cluster import StubCluster, node, pod
from tests.support.builders import REQUEST
from tests.support.stub import Answer, Asked, json_answer, status

ROOT = Path(__file__).parents[2]
BIND = f"kubectl create clusterrolebinding maintenance-reader --clusterrole {REPORT_ROLE}"


class Cluster(StubCluster):
    """A tenant may read the pods and budgets of `shop`, and list nodes if that is `permitted`."""

    user = "alice"
    permitted = False

    def instead(self, asked: Asked) -> Answer | None:
        kinds = {"pods": ("PodList", self.pods), "poddisruptionbudgets": ("PodDisruptionBudgetList", [])}
        *_, namespace, kind = asked.path.split("/")
        if namespace == "shop" and kind in kinds:
            listed, items = kinds[kind]
            return json_answer({"kind": listed, "metadata": {"resourceVersion": "1"}, "items": items})
        if self.permitted and asked.path == "/api/v1/nodes":
            return None
        return status(403, "Forbidden", f'{kind} is forbidden: User "{self.user}" cannot list resource')


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path, node("n"))) as made:
        made.pods.append(pod("shop", "web-0"))
        made.annotations()[REQUEST] = '{"kind": "Redeploy"}'
        yield made


@pytest.mark.parametrize("command", [("plan", "-n", "shop"), ("explain", "shop/web-0"), ("report",)])
@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("alice", "--user alice"),
        ("system:serviceaccount:shop:ci", "--serviceaccount shop:ci"),
        ("a b", "--user 'a b'"),
    ],
)
def test_who_may_not_list_nodes_is_told_so_first_and_what_gives_the_right(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], user: str, subject: str
) -> None:
    cluster.user = user

    assert cluster.run(*command) == 3

    said = capsys.readouterr().err
    assert said.startswith(f"you may not list nodes as {user}. The manifests in k8s/report give the rights")
    assert f"`kubectl apply -k k8s/report` and `{BIND} {subject}`" in said


def test_the_role_of_the_remedy_is_the_one_of_the_manifests() -> None:
    role = yaml.safe_load((ROOT / "k8s/report/cluster-role.yaml").read_text(encoding="utf-8"))

    assert role["metadata"]["name"] == REPORT_ROLE


def test_who_may_list_nodes_is_told_of_the_pods_of_the_own_namespace(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cluster.permitted = True
    config = tmp_path / "maintenance.yaml"
    config.write_text("mode: Enforce\n", encoding="utf-8")

    moves: list[dict[str, str]] = []
    unseen: list[set[str]] = []
    for command in (("plan", "-n", "shop"), ("report", "-n", "shop"), ("explain", "shop/web-0")):
        assert cluster.run(*command, "--config", str(config), "-o", "json") == 0
        document = json.loads(capsys.readouterr().out)
        moves += document["pods"] if "pods" in document else [document["pod"]["move"]]
        unseen.append({each["what"] for each in document["unseen"]})

    assert [(move["pod"], move["answer"]) for move in moves] == [("shop/web-0", "moves")] * 3
    for seen in unseen:
        assert "the pods of other namespaces" in seen
        assert "the pods" not in seen


def test_other_namespaces_stay_unseen(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.permitted = True

    assert cluster.run("plan", "-n", "team") == 1

    assert "the pods of the namespace 'team' can't be read: needs list pods" in capsys.readouterr().err


def test_who_may_not_write_a_node_is_told_whom_to_ask(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.permitted = True

    assert cluster.run("hold", "n") == 1

    said = capsys.readouterr().err
    assert "n: not written: needs patch nodes; ask an administrator of the cluster" in said
