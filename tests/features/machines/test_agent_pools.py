"""AKS's agent pools through the real pipeline: raised by one, a machine deleted, and nothing done twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler import USER_AGENT
from reconciler.features.machines import agent_pools
from reconciler.features.machines.agent_pools import AgentPools, Pipeline, connect
from reconciler.model.errors import CloudError, Conflict, LockLost
from reconciler.model.machine import AKS, Machine, MachineRef, Pool, Remove, ScaleUp
from reconciler.model.values import replace
from tests.features.machines.fake_agent_pools import CLUSTER, MACHINE_GONE, FakeAgentPools, FakePool, vm_id
from tests.support.controlplane import fill as pool_shape
from tests.support.fakes.arm import BROKEN, FORBIDDEN, NO_TOKEN, THROTTLED, RecordedArm, Refusal

AKS_NODE, ANOTHER, *_ = (pool_shape.Pool("np").node_name(number) for number in range(3))
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def azure() -> Iterator[FakeAgentPools]:
    with FakeAgentPools() as fake:
        yield fake
        assert fake.violations == []


@pytest.fixture
def pools(azure: FakeAgentPools) -> AgentPools:
    """Reads, and writes without a lock."""
    return AgentPools(CLUSTER, azure.pipeline(), guard=lambda: None)


def ref(node: str, pool: str = "np") -> MachineRef:
    """The node as it is where its providerID is true: "a" names no VM."""
    vm = f"azure://{vm_id(node, pool, single=pool == 'vms')}" if node.startswith("aks-") else ""
    return MachineRef(node, f"uid-of-{node}", AKS, node, pool=pool, provider_id=vm)


def seen(pools: AgentPools, node: str, pool: str = "np") -> Machine:
    """The machine as a pass observes it."""
    (found,) = pools.machines([ref(node, pool)])
    assert found.problem == ""
    return found


def pool_of(machine: Machine) -> Pool:
    assert machine.pool is not None
    return machine.pool


# What is seen.


def test_a_machine_is_read_with_its_pool(azure: FakeAgentPools, pools: AgentPools) -> None:
    first, *_ = azure.pool("np", 3)

    (found,) = pools.machines([ref(first)])

    pool = Pool("agent pool", "np", wanted=3, ready=3, revision="1", scales=True, lowered_by_deletion=True)
    assert found == Machine(ref(first), name=first, uid=vm_id(first, "np").casefold(), pool=pool)
    assert str(found.pool) == "agent pool np"


def test_each_pool_is_asked_for_once_and_the_order_is_kept(azure: FakeAgentPools, pools: AgentPools) -> None:
    one, two, _ = azure.pool("np", 3)
    (other,) = azure.pool("sys", 1, mode="System")

    found = pools.machines([ref(two), ref(other, "sys"), ref(one)])

    assert [machine.name for machine in found] == [two, other, one]
    assert [pool_of(machine).wanted for machine in found] == [3, 1, 3]
    assert azure.requests == ["GET np", "GET np/machines", "GET sys", "GET sys/machines"]


@pytest.mark.parametrize(
    ("properties", "scales", "busy", "ready"),
    [
        pytest.param({}, True, "", 3, id="at rest"),
        pytest.param({"enableAutoScaling": True}, False, "", 3, id="an autoscaler looks after it"),
        pytest.param(
            {"provisioningState": "Updating"}, True, "agent pool np is Updating", None, id="Updating"
        ),
        pytest.param(
            {"provisioningState": "Upgrading"}, True, "agent pool np is Upgrading", None, id="Upgrading"
        ),
        pytest.param({"provisioningState": "Failed"}, True, "", None, id="the last operation failed"),
        pytest.param({"provisioningState": "Canceled"}, True, "", None, id="the last one was stopped"),
        pytest.param(
            {"powerState": {"code": "Stopped"}}, True, "agent pool np is Stopped", None, id="switched off"
        ),
    ],
)
def test_whether_a_pool_may_be_asked_for_more(
    azure: FakeAgentPools,
    pools: AgentPools,
    properties: dict[str, object],
    scales: bool,
    busy: str,
    ready: int | None,
) -> None:
    first, *_ = azure.pool("np", 3, **properties)

    pool = pool_of(seen(pools, first))

    assert (pool.wanted, pool.scales, pool.busy, pool.ready) == (3, scales, busy, ready)


SIZE, ANOTHER_SIZE = ({"size": f"Standard_D2_v{number}", "count": number} for number in (2, 3))


@pytest.mark.parametrize(
    ("scale", "wanted", "scales"),
    [
        pytest.param({"manual": [SIZE]}, 2, True, id="its profile has the number"),
        pytest.param({"manual": [SIZE, ANOTHER_SIZE]}, None, False, id="several sizes: no number to raise"),
        pytest.param(
            {"manual": [SIZE], "autoscale": {"minCount": 1, "maxCount": 5}}, 2, False, id="an autoscaler"
        ),
    ],
)
def test_whether_a_pool_of_single_vms_may_be_asked_for_more(
    azure: FakeAgentPools, pools: AgentPools, scale: dict[str, object], wanted: int | None, scales: bool
) -> None:
    first, *_ = azure.pool("vms", 2, type="VirtualMachines", virtualMachinesProfile={"scale": scale})

    pool = pool_of(seen(pools, first, "vms"))

    assert (pool.wanted, pool.scales) == (wanted, scales)


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        pytest.param(FORBIDDEN, "agent pool np: 403 AuthorizationFailed The client does not", id="403"),
        pytest.param(BROKEN, "agent pool np: 500 InternalServerError", id="500"),
        pytest.param(Refusal(404, "NotFound", "Could not find it"), "404 NotFound Could not", id="404"),
        pytest.param(Refusal(409, "Conflict", "Being\nmade"), "busy with another operation: 409", id="409"),
    ],
)
def test_one_pool_that_fails_leaves_the_others_alone(
    azure: FakeAgentPools, pools: AgentPools, refusal: Refusal, words: str
) -> None:
    one, *_ = azure.pool("np")
    other, *_ = azure.pool("other")
    azure.refuse(refusal, "/np")

    first, second = pools.machines([ref(one), ref(other, "other")])

    assert words in first.problem
    assert "\n" not in first.problem
    assert first.pool is None
    assert pool_of(second).wanted == 3


@pytest.mark.parametrize("properties", [{"count": "three"}, {"count": True}, {"powerState": "on"}])
def test_an_answer_that_can_t_be_read_spoils_no_other(
    azure: FakeAgentPools, pools: AgentPools, properties: dict[str, object]
) -> None:
    one, *_ = azure.pool("np", 3, **properties)
    other, *_ = azure.pool("other")

    first, second = pools.machines([ref(one), ref(other, "other")])

    assert "agent pool np: its answer can't be read" in first.problem
    assert second.problem == ""


@pytest.mark.parametrize(
    "refusal", [THROTTLED, Refusal(429), NO_TOKEN], ids=["429", "429 without a wish", "401"]
)
def test_what_the_next_pool_would_hear_as_well_is_not_asked_for(
    azure: FakeAgentPools, pools: AgentPools, refusal: Refusal
) -> None:
    azure.pool("np")
    azure.pool("other")
    azure.refuse(refusal)

    first, second = pools.machines([ref("a"), ref("b", "other")])

    assert str(refusal.status) in first.problem
    assert second.problem == first.problem
    assert azure.requests == ["GET np"]


def test_without_an_answer_one_try_is_enough() -> None:
    with FakeAgentPools() as gone:
        nobody = gone.pipeline()

    first, second = AgentPools(CLUSTER, nobody).machines([ref("a"), ref("b", "other")])

    assert first.problem.startswith("agent pool np: ")
    assert second.problem == first.problem


def test_an_answer_that_does_not_come_is_not_waited_for(
    azure: FakeAgentPools, pools: AgentPools, monkeypatch: pytest.MonkeyPatch
) -> None:
    azure.pool("np")
    azure.refuse(Refusal(200, delay=10))
    monkeypatch.setattr(agent_pools, "READ_TIMEOUT", 0.2)

    (found,) = pools.machines([ref("a")])

    assert "timed out" in found.problem


# Asking for one more.


@pytest.mark.parametrize(
    ("properties", "sent"),
    [
        pytest.param(
            {"nodeTaints": ["a=b:NoSchedule"], "tags": {"x": "y"}, "vnetSubnetID": "/subnets/1"},
            {},
            id="known",
        ),
        pytest.param({"osSKU": "Ubuntu2604", "sinceNextYear": {"a": 1}}, {}, id="not known to this version"),
        pytest.param({"osType": "Linux", "scaleSetPriority": "Regular"}, {}, id="the API's defaults"),
        pytest.param({"osType": "Windows"}, {"osType": "Windows"}, id="Windows"),
        pytest.param({"scaleSetPriority": "Spot"}, {"scaleSetPriority": "Spot"}, id="spot"),
    ],
)
def test_only_the_count_of_a_pool_is_sent(
    azure: FakeAgentPools, pools: AgentPools, properties: dict[str, object], sent: dict[str, object]
) -> None:
    first, *_ = azure.pool("np", 3, **properties)
    added: list[str] = []
    azure.added = added.append
    before = dict(azure.pools["np"].properties)

    pools.scale_up(ScaleUp(first, seen(pools, first), 4))

    (written,) = azure.pools["np"].written
    minimal = {"type": "VirtualMachineScaleSets", "mode": "User", "count": 4}
    assert written == {"properties": {**minimal, **sent}}
    assert azure.pools["np"].properties == {**before, "count": 4}
    assert len(added) == 1


def test_a_pool_without_an_etag_is_not_changed(azure: FakeAgentPools, pools: AgentPools) -> None:
    azure.etags = False
    first, *_ = azure.pool("np", 3)

    with pytest.raises(Conflict, match="agent pool np has no eTag"):
        pools.scale_up(ScaleUp(first, seen(pools, first), 4))
    assert azure.writes == []


def test_a_pool_of_single_vms_is_raised_in_its_profile(azure: FakeAgentPools, pools: AgentPools) -> None:
    first, *_ = azure.pool("vms", 2, type="VirtualMachines")

    pools.scale_up(ScaleUp(first, seen(pools, first, "vms"), 3))

    (sent,) = azure.pools["vms"].written
    scale = sent["properties"]["virtualMachinesProfile"]["scale"]
    assert scale == {"manual": [{"size": "Standard_D8s_v5", "count": 3}]}
    assert "count" not in sent["properties"]


def test_raised_twice_is_raised_once(azure: FakeAgentPools, pools: AgentPools) -> None:
    first, *_ = azure.pool("np", 3)
    action = ScaleUp(first, seen(pools, first), 4)

    pools.scale_up(action)
    pools.scale_up(action)
    pools.scale_up(ScaleUp(first, seen(pools, first), 4))

    assert azure.count() == 4
    assert azure.writes == ["PUT np"]


def test_raised_while_the_first_raise_is_under_way_is_still_raised_once(azure: FakeAgentPools) -> None:
    azure.takes = 9
    pools = AgentPools(CLUSTER, azure.pipeline(), guard=lambda: None)
    first, *_ = azure.pool("np", 3)
    action = ScaleUp(first, seen(pools, first), 4)

    pools.scale_up(action)
    pools.scale_up(action)

    assert azure.writes == ["PUT np"]
    assert pool_of(seen(pools, first)).busy == "agent pool np is Scaling"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"count": 2}, "its count is 2, it was 3", id="somebody lowered it"),
        pytest.param({"enableAutoScaling": True}, "not ours to raise", id="an autoscaler took it over"),
    ],
)
def test_a_pool_that_was_changed_since_it_was_seen_is_left_alone(
    azure: FakeAgentPools, pools: AgentPools, change: dict[str, object], words: str
) -> None:
    first, *_ = azure.pool("np", 3)
    action = ScaleUp(first, seen(pools, first), 4)
    azure.change("np", **change)

    with pytest.raises(Conflict, match=words):
        pools.scale_up(action)
    assert azure.writes == []


def test_a_change_between_our_read_and_our_write_is_a_conflict(
    azure: FakeAgentPools, pools: AgentPools
) -> None:
    first, *_ = azure.pool("np", 3)
    action = ScaleUp(first, seen(pools, first), 4)
    read = azure.read

    def changed(pool: object) -> object:
        answer = read(pool)  # type: ignore[arg-type]  # passed through
        azure.pools["np"].etag += 1
        return answer

    azure.read = changed  # type: ignore[method-assign,assignment]  # somebody else's hand
    with pytest.raises(Conflict, match="changed meanwhile: agent pool np: 412 PreconditionFailed"):
        pools.scale_up(action)
    assert azure.count() == 3


def test_a_busy_pool_is_not_even_asked(azure: FakeAgentPools, pools: AgentPools) -> None:
    first, *_ = azure.pool("np", 3)
    machine = seen(pools, first)
    azure.change("np", provisioningState="Upgrading")

    with pytest.raises(CloudError, match="agent pool np is Upgrading") as raised:
        pools.scale_up(ScaleUp(first, machine, 4))
    with pytest.raises(CloudError, match="agent pool np is Upgrading"):
        pools.remove(Remove(first, machine, lower=2))

    assert raised.value.status == 409
    assert azure.writes == []


@pytest.mark.parametrize(
    ("refusal", "status", "wait", "words"),
    [
        pytest.param(THROTTLED, 429, 240, "429 TooManyRequests", id="429"),
        pytest.param(
            Refusal(409, "OperationNotAllowed", "in progress", {"Retry-After": "30"}),
            409,
            30,
            "agent pool np is busy with another operation: 409 OperationNotAllowed in progress",
            id="409",
        ),
        pytest.param(FORBIDDEN, 403, None, "403 AuthorizationFailed", id="403"),
        pytest.param(
            Refusal(503, "ServerBusy", "later", {"Retry-After": "Sat, 21 Nov 2026 12:02:00 GMT"}),
            503,
            120,
            "503 ServerBusy later",
            id="a moment as a date",
        ),
    ],
)
def test_a_refused_write_says_why_and_when_and_is_not_tried_again(
    azure: FakeAgentPools, refusal: Refusal, status: int, wait: float | None, words: str
) -> None:
    pools = AgentPools(CLUSTER, azure.pipeline(), guard=lambda: None, wall=NOON.timestamp)
    first, *_ = azure.pool("np", 3)
    machine = seen(pools, first)
    azure.refuse(refusal, "PUT")
    azure.refuse(refusal, "POST")

    with pytest.raises(CloudError, match=words) as raising:
        pools.scale_up(ScaleUp(first, machine, 4))
    with pytest.raises(CloudError, match=words) as removing:
        pools.remove(Remove(first, machine, lower=2))

    for reported in (raising.value, removing.value):
        assert (reported.status, reported.retry_after) == (status, wait)
        assert "\n" not in str(reported)
    assert azure.writes == ["PUT np", "POST np/deleteMachines"]
    assert azure.count() == 3


# Having one deleted.


def test_a_machine_is_deleted_and_the_count_goes_down_with_it(
    azure: FakeAgentPools, pools: AgentPools
) -> None:
    first, *others = azure.pool("np", 4)
    gone: list[str] = []
    azure.deleted = gone.append

    pools.remove(Remove(first, seen(pools, first), lower=3))

    assert (gone, azure.count(), azure.pools["np"].names) == ([first], 3, others)


@pytest.mark.parametrize("lower", [3, None], ids=["raised before", "an autoscaler's"])
def test_deleted_twice_is_deleted_once(azure: FakeAgentPools, pools: AgentPools, lower: int | None) -> None:
    first, *_ = azure.pool("np", 4, enableAutoScaling=lower is None)
    action = Remove(first, seen(pools, first), lower)

    pools.remove(action)
    pools.remove(action)
    (after,) = pools.machines([ref(first)])
    assert "has no machine of its name" in after.problem

    assert azure.count() == 3
    assert len(azure.pools["np"].names) == 3


def test_where_the_count_is_low_already_nothing_is_asked(azure: FakeAgentPools, pools: AgentPools) -> None:
    first, *_ = azure.pool("np", 4)
    machine = seen(pools, first)
    azure.change("np", count=3)

    pools.remove(Remove(first, machine, lower=3))

    assert azure.writes == []


def test_a_second_delete_while_the_first_is_under_way_deletes_no_other(azure: FakeAgentPools) -> None:
    azure.takes = 9
    pools = AgentPools(CLUSTER, azure.pipeline(), guard=lambda: None)
    first, *others = azure.pool("np", 4)
    action = Remove(first, seen(pools, first))

    pools.remove(action)
    with pytest.raises(CloudError, match="busy with another operation"):
        pools.remove(action)

    assert azure.pools["np"].names == others


def test_a_bad_request_of_another_kind_is_reported(azure: FakeAgentPools, pools: AgentPools) -> None:
    first, *_ = azure.pool("np", 4)
    azure.refuse(Refusal(400, "InvalidParameter", "The last system node may not go."), "POST")

    with pytest.raises(CloudError, match="400 InvalidParameter The last system node"):
        pools.remove(Remove(first, seen(pools, first)))


def test_a_pool_that_was_deleted_meanwhile_is_reported(azure: FakeAgentPools, pools: AgentPools) -> None:
    first, *_ = azure.pool("np", 4)
    machine = seen(pools, first)
    del azure.pools["np"]

    with pytest.raises(CloudError, match="404") as raised:
        pools.remove(Remove(first, machine))
    assert raised.value.status == 404


# What a node says of itself.

FORGED = {
    "another pool's label": {"pool": "gpu"},
    "no VM": {"provider_id": ""},
    "a VM of another subscription": {
        "provider_id": f"azure://{vm_id(AKS_NODE, 'np')}".replace("8ecadfc9", "00000000")
    },
    "a VM of nobody": {"provider_id": f"azure://{vm_id(AKS_NODE, 'np')}77"},
    "another node's VM": {"provider_id": f"azure://{vm_id(ANOTHER, 'np')}"},
    "a folder up in the label": {"pool": ".."},
    "a path in the label": {"pool": "../../agentPools/gpu"},
    "a query in the label": {"pool": "gpu?x=y"},
    "a long label": {"pool": "g" * 300},
}


@pytest.mark.parametrize("what", FORGED)
def test_a_node_that_is_in_no_such_pool_gets_nothing(
    azure: FakeAgentPools, pools: AgentPools, what: str
) -> None:
    azure.pool("np", 3)
    azure.pool("gpu", 2)
    honest = seen(pools, AKS_NODE)
    forged = replace(ref(AKS_NODE), **FORGED[what])  # type: ignore[arg-type]  # texts only

    (found,) = pools.machines([forged])

    assert found == Machine(forged, problem=found.problem)
    assert found.problem
    assert len(found.problem) < 300
    # Even an action that somebody made of it, with what is known of another machine, changes nothing.
    acting = replace(honest, ref=forged, uid="")
    with pytest.raises((CloudError, Conflict)):
        pools.scale_up(ScaleUp(AKS_NODE, acting, 4))
    with pytest.raises((CloudError, Conflict)):
        pools.remove(Remove(AKS_NODE, acting))
    assert azure.writes == []


def test_a_listed_machine_is_found_by_its_vm_without_regard_to_case(
    azure: FakeAgentPools, pools: AgentPools
) -> None:
    azure.pool("np", 3)
    node = ref(AKS_NODE)
    shouting = replace(node, provider_id=node.provider_id.upper().replace("AZURE://", "azure://"))

    (found,) = pools.machines([shouting])

    assert (found.problem, found.name) == ("", AKS_NODE)


def test_a_list_in_pages_is_read_to_its_end(azure: FakeAgentPools, pools: AgentPools) -> None:
    *_, last = azure.pool("np", 7)
    azure.page = 3

    assert seen(pools, last).name == last
    assert azure.requests == ["GET np", *["GET np/machines"] * 3]


def test_the_token_follows_a_list_to_no_other_address(azure: FakeAgentPools, pools: AgentPools) -> None:
    *_, last = azure.pool("np", 7)
    azure.page, azure.elsewhere = 3, "http://127.0.0.1:1"

    (found,) = pools.machines([ref(last)])

    assert "at another address" in found.problem


@pytest.mark.parametrize(
    ("link", "same"),
    [
        pytest.param("https://management.azure.com:443/y?$skiptoken=1", True, id="with the port"),
        pytest.param("https://MANAGEMENT.azure.com/y", True, id="in capitals"),
        pytest.param("https://management.azure.com:8443/y", False, id="another port"),
        pytest.param("http://management.azure.com:443/y", False, id="without TLS"),
        pytest.param("https://management.azure.com@elsewhere.example/y", False, id="a host behind a user"),
        pytest.param("https://user@management.azure.com/y", False, id="with a user"),
        pytest.param("https://management.azure.com:443.example/y", False, id="a port that is no number"),
        pytest.param("/y", False, id="no server"),
    ],
)
def test_a_list_goes_on_at_the_same_server_only(link: str, same: bool) -> None:
    page = {"value": [], "nextLink": link}
    arm = RecordedArm({"/np": {"properties": {"count": 3}}, "/np/machines": page, link: {"value": []}})

    (found,) = AgentPools(CLUSTER, arm).machines([ref(AKS_NODE)])

    assert (link in arm.requests) is same
    assert ("at another address" in found.problem) is not same


def test_a_list_without_an_end_is_left(
    azure: FakeAgentPools, pools: AgentPools, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, last = azure.pool("np", 9)
    azure.page = 1
    monkeypatch.setattr(agent_pools, "PAGES", 4)

    (found,) = pools.machines([ref(last)])

    assert "more than 4 pages" in found.problem


def test_a_list_that_is_refused_is_a_problem_and_nothing_is_changed(
    azure: FakeAgentPools, pools: AgentPools
) -> None:
    azure.pool("np", 3)
    azure.refuse(FORBIDDEN, "/machines")

    (found,) = pools.machines([ref(AKS_NODE)])

    assert "403 AuthorizationFailed" in found.problem


@pytest.mark.parametrize("status", [400, 404])
def test_a_refused_deletion_counts_as_done_only_if_the_machine_is_gone(
    azure: FakeAgentPools, pools: AgentPools, status: int
) -> None:
    azure.pool("np", 4)
    machine = seen(pools, AKS_NODE)
    azure.refuse(Refusal(status, "InvalidParameter", MACHINE_GONE), "POST")

    with pytest.raises(CloudError, match="Cannot find any valid machines") as raised:
        pools.remove(Remove(AKS_NODE, machine))

    assert raised.value.status == status
    assert AKS_NODE in azure.pools["np"].names


def test_a_machine_that_another_client_deletes_meanwhile_is_gone(
    azure: FakeAgentPools, pools: AgentPools
) -> None:
    azure.pool("np", 4)
    machine = seen(pools, AKS_NODE)
    delete = azure.delete

    def first(pool: FakePool, body: Any) -> Any:
        pool.names.remove(AKS_NODE)
        return delete(pool, body)

    azure.delete = first  # type: ignore[method-assign]  # somebody else is quicker
    pools.remove(Remove(AKS_NODE, machine))

    assert azure.writes == ["POST np/deleteMachines"]


# Who asks.


def test_a_lost_lock_writes_nothing(azure: FakeAgentPools) -> None:
    def lost() -> None:
        raise LockLost("gone")

    pools = AgentPools(CLUSTER, azure.pipeline(), guard=lost)
    first, *_ = azure.pool("np", 4)
    machine = seen(pools, first)

    with pytest.raises(LockLost):
        pools.scale_up(ScaleUp(first, machine, 5))
    with pytest.raises(LockLost):
        pools.remove(Remove(first, machine))
    assert azure.writes == []


def test_without_the_lock_nothing_is_written(azure: FakeAgentPools) -> None:
    pools = AgentPools(CLUSTER, azure.pipeline())
    first, *_ = azure.pool("np", 4)

    with pytest.raises(RuntimeError, match="made for reading"):
        pools.remove(Remove(first, seen(pools, first)))


def test_a_request_names_the_program_to_azure(azure: FakeAgentPools, pools: AgentPools) -> None:
    azure.pool("np")
    pools.machines([ref("a")])

    assert azure.user_agents
    assert all(USER_AGENT in agent for agent in azure.user_agents)


@pytest.mark.parametrize(
    ("cloud", "address"),
    [
        ("Public", "https://management.azure.com/x"),
        ("China", "https://management.chinacloudapi.cn/x"),
        ("USGovernment", "https://management.usgovcloudapi.net/x"),
    ],
)
def test_each_cloud_has_its_own_address(cloud: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", "/var/run/secrets/azure/tokens/azure-identity-token")
    monkeypatch.setenv("AZURE_TENANT_ID", "00000000-0000-0000-0000-000000000000")
    monkeypatch.setenv("AZURE_CLIENT_ID", "00000000-0000-0000-0000-000000000000")
    monkeypatch.delenv("AZURE_AUTHORITY_HOST", raising=False)

    pipeline: Pipeline = connect(cloud)

    assert pipeline().format_url("/x") == address
    assert pipeline() is pipeline()


def test_an_incomplete_workload_identity_is_reported_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", "/nowhere")
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID"):
        monkeypatch.delenv(name, raising=False)

    (found,) = AgentPools(CLUSTER, connect()).machines([ref("a")])

    assert "tenant_id" in found.problem
