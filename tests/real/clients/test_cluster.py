"""The contract of what a pass reads: the plain way and the one for thousands of nodes give the same.

Lists have theirs in `test_lists.py`. Law 20 is that of the store: `test_following.py` compares what
follows from it with what follows from the plain way, after any changes.
"""

import json
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from reconciler import USER_AGENT
from reconciler.drain.workloads import GROUP_LABELS, group_of
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import LARGEST, Connection
from reconciler.kubernetes.scale import cluster as reading
from reconciler.kubernetes.scale.cluster import CachedCluster
from reconciler.kubernetes.scale.node_store import NodeStore
from reconciler.kubernetes.wire import protobuf
from reconciler.model import limits
from reconciler.model.errors import Forbidden, NotFound, Rejected, Unauthorized
from reconciler.model.ports import LookRequest, read_of
from reconciler.model.selector import LabelSelector, Requirement
from reconciler.model.snapshot import Agents, Ledger, Remediator, ServerVersion
from reconciler.model.values import replace
from tests.real.clients.conftest import PREFIX, WANTED
from tests.support.controlplane import workloads
from tests.support.controlplane.fill import fill
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.shapes import encoded, envelope, field
from tests.support.stub import PROTOBUF, Answer, Asked, StubMaker, json_answer, status

AGENT = "node-maintenance-agent"
OURS = "node-maintenance"
_NUMBERS = count()

Made = type[Cluster]

START = datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(params=[Cluster, CachedCluster], ids=["plain", "at scale"])
def made(request: pytest.FixtureRequest) -> Made:
    """Return the class of the cluster, of which each test is run for both."""
    chosen: Made = request.param
    return chosen


@pytest.fixture
def ours(connection: Connection, made: Made) -> Cluster:
    """Reads, and writes without a lock."""
    return made(connection, guard=lambda: None)


def test_nodes_come_sorted_by_name_and_reduced(cluster: ControlPlane, ours: Cluster) -> None:
    names = fill(cluster.kubeconfig, nodes=5)
    found = ours.nodes(WANTED)

    assert [node.name for node in found] == sorted(names)
    assert {condition.type for node in found for condition in node.conditions} <= WANTED.conditions
    assert all(key.startswith(PREFIX) for node in found for key in node.annotations)
    assert all(node.allocatable == {} for node in found)


def test_each_look_shows_the_nodes_as_they_are_now(cluster: ControlPlane, ours: Cluster) -> None:
    first, second = sorted(fill(cluster.kubeconfig, nodes=2))
    before = {node.name: node for node in ours.nodes(WANTED)}
    cluster.api.patch("nodes", first, {"spec": {"unschedulable": True}})
    cluster.api.delete("nodes", second)

    (now,) = ours.nodes(WANTED)
    assert (now.name, now.uid, now.unschedulable) == (first, before[first].uid, True)
    assert now.resource_version != before[first].resource_version
    assert ours.node(first, WANTED) == now
    with pytest.raises(NotFound):
        ours.node(second, WANTED)


def test_what_is_no_name_of_a_node_is_not_asked_for(made: Made, stub: StubMaker) -> None:
    server, connection = stub(lambda _: Answer())

    with pytest.raises(NotFound, match="no node's name"):
        made(connection).node("../pods", WANTED)
    assert server.asked == []


def test_what_no_object_should_have_harms_no_other(made: Made, stub: StubMaker) -> None:
    """Texts that are no UTF-8, times that no calendar has, annotations without end."""
    record = f"{PREFIX}/record"
    ready = protobuf.NodeCondition(type="Ready", status="True")
    ready.lastHeartbeatTime.seconds = 2**62
    broken = protobuf.Node(metadata={"name": "a"}, status={"conditions": [ready]})
    text = broken.SerializeToString() + field(1, field(12, field(1, record) + field(2, b"\xff")))
    long = encoded(protobuf.Node(), {"metadata": {"name": "b", "annotations": {record: "x" * 200_000}}})
    listed = field(1, field(2, "7")) + field(2, text) + field(2, long)
    _, connection = stub(lambda _: Answer(envelope("NodeList", listed), content_type=PROTOBUF))

    first, second = made(connection).nodes(WANTED)
    assert (first.name, first.annotations[record]) == ("a", "\N{REPLACEMENT CHARACTER}")
    assert first.conditions[0].unreadable == ("heartbeat",)
    assert len(second.annotations[record]) < 200_000


def test_a_list_larger_than_any_answer_may_be_is_read_in_smaller_pages(made: Made, stub: StubMaker) -> None:
    count, large = 20, field(1, field(3, "default") + field(12, field(1, "a") + field(2, "x" * (1 << 20))))

    def answer(asked: Asked) -> Answer:
        done = int(asked.query.get("continue", "0"))
        last = min(done + int(asked.query["limit"]), count)
        meta = field(2, "7") + field(3, str(last) if last < count else "")
        names = (f"p{number:02}" for number in range(done, last))
        pods = b"".join(field(2, large + field(1, field(1, name))) for name in names)
        return Answer(envelope("PodList", field(1, meta) + pods), content_type=PROTOBUF)

    _, connection = stub(answer)

    assert [pod.name for pod in made(connection).pods()] == [f"p{number:02}" for number in range(count)]


def test_an_object_larger_than_any_may_be_is_refused(made: Made, stub: StubMaker) -> None:
    pod = field(2, field(1, field(1, "p") + field(12, field(1, "a") + field(2, "x" * LARGEST))))
    body = envelope("PodList", field(1, field(2, "7")) + pod)
    _, connection = stub(lambda _: Answer(body, content_type=PROTOBUF))

    with pytest.raises(Rejected):
        made(connection).pods()


def test_pods_of_one_node_and_of_all(cluster: ControlPlane, ours: Cluster) -> None:
    one, two = fill(cluster.kubeconfig, nodes=2)
    for name, node in (("a", one), ("b", two)):
        cluster.api.create("pods", workloads.pod(name, node_name=node))

    assert [pod.key for pod in ours.pods(one)] == ["default/a"]
    assert [pod.key for pod in ours.pods()] == ["default/a", "default/b"]
    assert ours.pods(one)[0].placement is None
    assert ours.pods(one, placement=True)[0].placement is not None


def test_the_pods_of_groups_are_found_by_each_of_their_labels(cluster: ControlPlane, ours: Cluster) -> None:
    (node,) = fill(cluster.kubeconfig, nodes=1)
    cluster.api.create("pods", workloads.pod("alone", node_name=node))
    for number, label in enumerate(GROUP_LABELS):
        made = workloads.pod(f"in-{number}", node_name=node, labels={label: "train"})
        cluster.api.create("pods", made)

    found = [[pod.key for pod in ours.pods_with(label)] for label in GROUP_LABELS]
    assert found == [[f"default/in-{number}"] for number in range(len(GROUP_LABELS))]
    assert all(group_of(pod).endswith("default/train") for pod in ours.pods(node) if pod.name != "alone")


def test_budgets_and_namespaces(cluster: ControlPlane, ours: Cluster) -> None:
    cluster.api.create("namespaces", {"metadata": {"name": "shop", "labels": {"team": "a"}}})
    budget = workloads.budget("web", namespace="shop", min_available=2)
    budget["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    budget["spec"]["selector"]["matchExpressions"] = [{"key": "x", "operator": "Exists"}]
    cluster.api.create("poddisruptionbudgets", budget)

    (found,) = ours.budgets()
    assert (found.key, found.unhealthy_always) == ("shop/web", True)
    assert found.selector == LabelSelector.of({"app": "web"}, Requirement("x", "Exists"))
    assert ours.namespaces()["shop"]["team"] == "a"


def test_where_no_agent_is_installed_there_is_none(ours: Cluster) -> None:
    assert ours.agents() == Agents(installed=False)


@pytest.fixture
def namespace(cluster: ControlPlane) -> str:
    """A namespace of the test's own, for the DaemonSet of the agents.

    The DaemonSet controller remembers by namespace and name which pods it has yet to see. Cleaning may delete
    a DaemonSet while the controller creates its pods. The controller then never sees them, and the next
    DaemonSet of that namespace and name gets no pods for 5 minutes.
    """
    name = f"agents-{next(_NUMBERS)}"
    cluster.api.create_namespace(name)
    return name


def test_agents_that_are_all_ready_cost_one_request(
    made: Made, cluster: ControlPlane, connection: Connection, namespace: str
) -> None:
    fill(cluster.kubeconfig, nodes=2)
    install(cluster, namespace)
    wait_for("agents", lambda: ready_agents(cluster, namespace) == 2)
    before = datetime.now(UTC)

    assert made(connection, agent_namespace=namespace).agents() == Agents(installed=True)
    asked = cluster.audit_entries(USER_AGENT, since=before)
    assert [entry.resource for entry in asked] == ["daemonsets"]


def test_a_node_whose_agent_is_not_ready_is_named(
    made: Made, cluster: ControlPlane, connection: Connection, namespace: str
) -> None:
    names = fill(cluster.kubeconfig, nodes=2)
    install(cluster, namespace)
    wait_for("agents", lambda: ready_agents(cluster, namespace) == 2)
    pods = {pod["spec"]["nodeName"]: pod for pod in cluster.api.list("pods", namespace)}
    conditions = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    name = pods[names[1]]["metadata"]["name"]
    cluster.api.patch("pods", name, conditions, namespace, subresource="status")
    wait_for("one agent", lambda: ready_agents(cluster, namespace) == 1)

    found = made(connection, agent_namespace=namespace).agents()
    assert found == Agents(installed=True, not_ready=frozenset({names[1]}))


def test_a_node_on_which_the_agents_pod_is_missing_is_not_covered(
    made: Made, cluster: ControlPlane, connection: Connection, namespace: str
) -> None:
    names = fill(cluster.kubeconfig, nodes=2)
    install(cluster, namespace)
    wait_for("agents", lambda: ready_agents(cluster, namespace) == 2)
    # No more pods in there: the one that is deleted does not come back.
    quota = {"metadata": {"name": "none", "namespace": namespace}, "spec": {"hard": {"pods": "0"}}}
    cluster.api.create("resourcequotas", quota)
    in_force = "a quota in force"
    wait_for(in_force, lambda: "hard" in cluster.api.get("resourcequotas", "none", namespace)["status"])
    pods = {pod["spec"]["nodeName"]: pod for pod in cluster.api.list("pods", namespace)}
    cluster.api.delete("pods", pods[names[1]]["metadata"]["name"], namespace, grace=0)
    wait_for("one agent", lambda: ready_agents(cluster, namespace) == 1)

    found = made(connection, agent_namespace=namespace).agents()
    assert found == Agents(installed=True, covered=frozenset({names[0]}))


def install(cluster: ControlPlane, namespace: str) -> None:
    """The agent's DaemonSet, as our manifests name and label it."""
    made = workloads.daemon_set(AGENT, namespace=namespace)
    labels = {"app.kubernetes.io/name": AGENT}
    made["spec"]["template"]["metadata"]["labels"] = labels
    made["spec"]["selector"]["matchLabels"] = labels
    cluster.api.create("daemonsets", made)


def ready_agents(cluster: ControlPlane, namespace: str) -> int:
    """As the DaemonSet's status counts them."""
    found = cluster.api.get("daemonsets", AGENT, namespace)["status"]
    return int(found.get("numberReady", 0)) if found.get("desiredNumberScheduled") == 2 else -1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, Remediator()),
        ({"appConfig": '{"Cluster":{"OnFreeze":{"Enabled":true}}}'}, Remediator(True, True)),
        ({"appConfig": '{"Cluster":{"OnFreeze":{"Enabled":false}}}'}, Remediator(True)),
        ({"appConfig": '{"Cluster":{}}'}, Remediator(True)),
        ({}, Remediator(True)),
    ],
)
def test_the_remediators_configuration(
    cluster: ControlPlane, ours: Cluster, data: dict[str, str] | None, expected: Remediator
) -> None:
    if data is not None:
        made = {"metadata": {"name": "remediator-config", "namespace": "kube-system"}, "data": data}
        cluster.api.create("configmaps", made)

    assert ours.remediator() == expected


@pytest.mark.parametrize("text", ["{", "[]", '{"Cluster":null}'])
def test_a_configuration_that_cant_be_read_is_a_problem_and_not_an_error(
    cluster: ControlPlane, ours: Cluster, text: str
) -> None:
    made = {
        "metadata": {"name": "remediator-config", "namespace": "kube-system"},
        "data": {"appConfig": text},
    }
    cluster.api.create("configmaps", made)

    found = ours.remediator()
    assert (found.config_found, found.on_freeze) == (True, False)
    assert "can't be read" in found.problem


def test_the_ledger_is_made_read_and_never_moves_back(cluster: ControlPlane, ours: Cluster) -> None:
    cluster.api.create_namespace(OURS)
    assert ours.ledger() == Ledger()

    ours.write_ledger(Ledger(START))
    assert ours.ledger() == Ledger(START)
    ours.write_ledger(Ledger(START - timedelta(hours=1)))
    assert ours.ledger() == Ledger(START)
    ours.write_ledger(Ledger(START + timedelta(hours=1)))
    assert ours.ledger() == Ledger(START + timedelta(hours=1))


@pytest.mark.parametrize("seconds", [pytest.param(1000, id="at once"), pytest.param(0, id="later")])
def test_a_pass_that_follows_at_once_has_the_ledger_of_the_pass_before(
    cluster: ControlPlane, connection: Connection, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LEDGER_FOR", seconds)
    cluster.api.create_namespace(OURS)
    following = CachedCluster(connection, guard=lambda: None, store=NodeStore())
    other = Cluster(connection, guard=lambda: None)

    def read() -> datetime | None:
        return read_of(following.look(LookRequest(WANTED)).ledger).last_start

    assert read() is None
    other.write_ledger(Ledger(START))
    assert read() == (None if seconds else START)
    # What this process has written is known at once.
    later = START + timedelta(hours=1)
    following.write_ledger(Ledger(later))
    assert read() == later


def test_the_same_ledger_again_is_not_written(cluster: ControlPlane, ours: Cluster) -> None:
    cluster.api.create_namespace(OURS)
    ours.write_ledger(Ledger(START))
    before = cluster.api.get("configmaps", "node-maintenance-ledger", OURS)
    ours.write_ledger(Ledger(START))

    assert cluster.api.get("configmaps", "node-maintenance-ledger", OURS) == before


def test_a_ledger_that_cant_be_read_is_not_taken_for_an_empty_one(
    cluster: ControlPlane, ours: Cluster
) -> None:
    cluster.api.create_namespace(OURS)
    made = {"metadata": {"name": "node-maintenance-ledger", "namespace": OURS}, "data": {"lastStart": "soon"}}
    cluster.api.create("configmaps", made)

    found = ours.ledger()
    assert "soon" in found.unread
    ours.write_ledger(found)
    kept = cluster.api.get("configmaps", "node-maintenance-ledger", OURS)
    assert kept["data"] == {"lastStart": "soon"}

    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    ours.write_ledger(replace(found, last_start=now, unread=""))
    assert ours.ledger() == Ledger(last_start=now)


def test_a_pass_that_may_not_list_nodes_has_no_rights(made: Made, stub: StubMaker) -> None:
    _, connection = stub(lambda _: status(403, "Forbidden"))

    with pytest.raises(Unauthorized):
        made(connection).look(LookRequest(WANTED))


def test_what_may_not_be_read_of_others_is_a_problem(made: Made, stub: StubMaker) -> None:
    _, connection = stub(lambda _: status(403, "Forbidden", "no"))
    cluster = made(connection)

    assert "no" in cluster.agents().problem
    assert "no" in cluster.remediator().problem


def test_reading_changes_nothing_and_asks_for_no_node_twice(
    made: Made, cluster: ControlPlane, connection: Connection
) -> None:
    fill(cluster.kubeconfig, nodes=3)
    before = datetime.now(UTC)
    reader = made(connection)
    reader.look(LookRequest(WANTED, agents=True, remediator=True, server=True))
    reader.pods()
    reader.budgets()
    reader.namespaces()

    asked = cluster.audit_entries(USER_AGENT, since=before)
    assert {entry.verb for entry in asked} == {"get", "list"}
    assert len(asked) == 8


def test_a_look_shows_what_was_requested(cluster: ControlPlane, ours: Cluster) -> None:
    fill(cluster.kubeconfig, nodes=3)
    cluster.api.create_namespace(OURS)
    ours.write_ledger(Ledger(START))

    look = ours.look(LookRequest(WANTED, server=True))
    assert look.in_order == ours.nodes(WANTED)
    assert look.server == ours.server_version()
    assert read_of(look.ledger).last_start == START
    assert (look.changed, look.agents, look.remediator) == (None, Agents(), Remediator())


def test_what_a_look_can_not_read_is_the_error(made: Made, stub: StubMaker) -> None:
    nodes = Answer(envelope("NodeList", field(1, field(2, "7"))), content_type=PROTOBUF)

    def nodes_only(asked: Asked) -> Answer:
        return nodes if asked.path == "/api/v1/nodes" else status(403, "Forbidden", "no")

    _, connection = stub(nodes_only)
    look = made(connection).look(LookRequest(WANTED, agents=True))

    assert look.in_order == ()
    with pytest.raises(Forbidden):
        read_of(look.ledger)
    assert "no" in read_of(look.agents).problem


def test_a_reader_cant_write(made: Made, connection: Connection) -> None:
    with pytest.raises(RuntimeError, match="guard"):
        made(connection).write_ledger(Ledger(datetime.now(UTC)))


def agents_of(made: Made, stub: StubMaker, pods: list[dict[str, Any]]) -> Agents:
    """What is made of the agent's pods when the DaemonSet says that some are not ready."""

    def answer(asked: Any) -> Answer:
        if asked.path.endswith(AGENT):
            return json_answer({"metadata": {}, "status": {"desiredNumberScheduled": 2, "numberReady": 1}})
        return Answer(json.dumps({"kind": "PodList", "items": pods}).encode())

    _, connection = stub(answer)
    return made(connection).agents()


def agent(node: str, ready: str) -> dict[str, Any]:
    """One agent's pod."""
    return {
        "metadata": {"name": f"{node}-{ready}"},
        "spec": {"nodeName": node},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def test_while_the_agent_is_rolled_out_one_ready_pod_a_node_is_enough(made: Made, stub: StubMaker) -> None:
    found = agents_of(made, stub, [agent("a", "True"), agent("a", "False"), agent("b", "False")])

    assert found.not_ready == {"b"}


@pytest.mark.parametrize(
    ("labels", "covered"),
    [
        pytest.param({}, {"a"}, id="a taint that the agent does not tolerate"),
        pytest.param({"kubernetes.azure.com/hostedvm": "true"}, None, id="AKS manages it itself"),
        pytest.param({"type": "virtual-kubelet"}, None, id="a virtual node"),
        pytest.param({"kubernetes.io/os": "windows"}, None, id="Windows"),
    ],
)
def test_a_node_that_the_daemon_set_leaves_out_is_not_covered(
    made: Made, stub: StubMaker, labels: dict[str, str], covered: set[str] | None
) -> None:
    listed = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b", "labels": labels}}]

    def answer(asked: Any) -> Answer:
        if asked.path.endswith("/nodes"):
            return Answer(json.dumps({"kind": "NodeList", "items": listed}).encode())
        if asked.path.endswith(AGENT):
            return json_answer({"metadata": {}, "status": {"desiredNumberScheduled": 1, "numberReady": 1}})
        return Answer(json.dumps({"kind": "PodList", "items": [agent("a", "True")]}).encode())

    _, connection = stub(answer)
    cluster = made(connection)
    cluster.nodes(WANTED)

    assert cluster.agents().covered == covered


def test_the_versions_of_the_api_server_and_of_kubelets_are_read(
    cluster: ControlPlane, ours: Cluster
) -> None:
    fill(cluster.kubeconfig, nodes=1)
    (name,) = [node.name for node in ours.nodes(WANTED)]
    status = cluster.api.get("nodes", name)["status"]["nodeInfo"]
    whole = cluster.api.request("GET", "version")

    assert ours.server_version() == ServerVersion(whole["gitVersion"])
    assert whole["gitVersion"].startswith("v1.")
    assert [node.kubelet_version for node in ours.nodes(WANTED)] == [status["kubeletVersion"]] != [""]
    assert ours.node(name, WANTED).kubelet_version == status["kubeletVersion"]


def test_a_version_without_end_is_cut(made: Made, stub: StubMaker) -> None:
    _, connection = stub(lambda _: json_answer({"gitVersion": "v" * 9000}))

    assert len(made(connection).server_version().text) <= limits.NAME


def test_a_version_that_may_not_be_read_is_a_problem(made: Made, stub: StubMaker) -> None:
    _, connection = stub(lambda _: status(403, "Forbidden", "forbidden"))

    assert "forbidden" in made(connection).server_version().problem
