"""Servers of nodes in OpenStack: which one is a node's, and what a service that is wrong or slow costs."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jobs.runtime.machines import MachineClient
from reconciler.features.kubernikus.client import PAUSE, Servers, at_place
from reconciler.features.kubernikus.process import OPENSTACK
from reconciler.kubernetes.cloud_provider import Place
from reconciler.model.errors import CloudError, LockLost
from reconciler.model.machine import Machine, MachineRef, Remove
from reconciler.model.values import replace
from tests.support.fakes.openstack import PASSWORD, FakeOpenStack, Refusal, identity

NOVA = "/compute/v2.1/servers"
TOKENS = "/v3/auth/tokens"
REF = MachineRef("n1", "uid-n1", OPENSTACK, "n1", provider_id=f"openstack:///{identity(1)}")


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def cloud() -> Iterator[FakeOpenStack]:
    with FakeOpenStack() as made:
        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def servers(cloud: FakeOpenStack, clock: Clock) -> Servers:
    return Servers(lambda: cloud.access, lambda: None, clock=clock, answer=0.5)


def seen(servers: MachineClient, ref: MachineRef = REF) -> Machine:
    (machine,) = servers.machines([ref])
    return machine


@pytest.mark.parametrize(
    "provider_id",
    [f"openstack:///{identity(1)}", f"openstack://eu-de-1/{identity(1)}", ""],
    ids=["its ID", "its region and ID", "its name"],
)
def test_the_server_of_a_node_is_found(cloud: FakeOpenStack, servers: Servers, provider_id: str) -> None:
    cloud.add("n1")
    machine = seen(servers, replace(REF, provider_id=provider_id, pool="small"))

    assert (machine.uid, machine.name, machine.problem, machine.deleting) == (identity(1), "n1", "", False)
    assert str(machine.pool) == "Kubernikus pool small"


@pytest.mark.parametrize(
    ("ref", "problem"),
    [
        pytest.param(REF, f"server {identity(1)} has the name 'n10', and its node the name n1", id="name"),
        pytest.param(
            replace(REF, provider_id=f"openstack://eu-nl-1/{identity(1)}"),
            "the server is in the region eu-nl-1, and the credentials are for eu-de-1",
            id="another region",
        ),
        pytest.param(
            replace(REF, provider_id="openstack:///../../other"),
            "the providerID 'openstack:///../../other' names no server of OpenStack",
            id="no ID",
        ),
        pytest.param(
            replace(REF, provider_id=f"openstack:///{identity(2)}"),
            f"OpenStack has no server openstack:///{identity(2)}: it is gone already, or in another project",
            id="gone",
        ),
        pytest.param(
            replace(REF, provider_id=""),
            "OpenStack has no server n1: it is gone already, or in another project",
            id="only a longer name",
        ),
    ],
)
def test_another_server_is_refused_with_both_values(
    cloud: FakeOpenStack, servers: Servers, ref: MachineRef, problem: str
) -> None:
    cloud.add("n10")

    assert seen(servers, ref).problem == problem


def test_the_address_of_keystone_may_be_without_its_version(cloud: FakeOpenStack) -> None:
    access = cloud.access
    without = replace(access, auth_url=access.auth_url.removesuffix("/v3"))

    assert access.identity == without.identity == f"{cloud.address}/v3"


def test_a_dot_in_a_name_is_a_dot(cloud: FakeOpenStack, servers: Servers) -> None:
    cloud.add("a.b")
    cloud.add("axb", 2)

    assert seen(servers, replace(REF, name="a.b", node="a.b", provider_id="")).uid == identity(1)


def test_a_list_of_more_than_was_asked_for_has_one_server_of_the_name(
    cloud: FakeOpenStack, servers: Servers
) -> None:
    cloud.add("n10")
    cloud.add("n1", 2)
    cloud.filters = False

    assert seen(servers, replace(REF, provider_id="")).uid == identity(2)


def test_two_servers_of_one_name_are_refused(cloud: FakeOpenStack, servers: Servers) -> None:
    cloud.add("n1")
    cloud.add("n1", 2)
    problem = seen(servers, replace(REF, provider_id="")).problem

    assert problem.startswith("OpenStack has 2 servers with the name n1: ")
    assert identity(1) in problem
    assert identity(2) in problem


def test_a_deleted_server_lingers_and_is_then_gone(cloud: FakeOpenStack, servers: Servers) -> None:
    cloud.add("n1")
    servers.remove(Remove("n1", seen(servers)))
    assert cloud.deletions() == [f"DELETE {NOVA}/{identity(1)}"]
    assert seen(servers).deleting

    cloud.step()
    assert seen(servers, replace(REF, asked=True)).deleting
    servers.remove(Remove("n1", Machine(REF, uid=identity(1))))


def test_without_the_lock_nothing_is_deleted(cloud: FakeOpenStack) -> None:
    def lost() -> None:
        raise LockLost("gone")

    cloud.add("n1")
    servers = Servers(lambda: cloud.access, lost)
    with pytest.raises(LockLost):
        servers.remove(Remove("n1", seen(servers)))
    assert cloud.deletions() == []


def test_a_locked_server_is_tried_again_at_once(cloud: FakeOpenStack, servers: Servers) -> None:
    cloud.add("n1").locked = True
    with pytest.raises(CloudError, match="HTTP 409: the server is locked or busy"):
        servers.remove(Remove("n1", seen(servers)))

    assert seen(servers).problem == ""


def test_a_token_that_ended_is_renewed_once(cloud: FakeOpenStack, servers: Servers) -> None:
    cloud.add("n1")
    seen(servers)
    cloud.expire()
    before = len(cloud.asked)

    assert seen(servers).problem == ""
    assert cloud.asked[before:] == [
        f"GET {NOVA}/{identity(1)}",
        f"POST {TOKENS}",
        f"GET {NOVA}/{identity(1)}",
    ]


def test_a_token_that_is_never_right_is_asked_for_no_more_than_once(
    cloud: FakeOpenStack, servers: Servers
) -> None:
    cloud.add("n1")
    seen(servers)
    cloud.refuse[NOVA] = [Refusal(401)] * 9
    before = len(cloud.asked)

    assert "HTTP 401: the credentials are refused" in seen(servers).problem
    assert len(cloud.asked) - before == 3


@pytest.mark.parametrize(
    ("at", "status", "headers", "pause"),
    [
        (TOKENS, 401, {}, PAUSE),
        (NOVA, 403, {}, PAUSE),
        (NOVA, 429, {"Retry-After": "90"}, 90),
        (NOVA, 429, {"Retry-After": "soon"}, PAUSE),
        (NOVA, 429, {"Retry-After": "99999999"}, 600),
        (NOVA, 500, {}, PAUSE),
        (NOVA, 503, {}, PAUSE),
    ],
)
def test_after_a_refusal_it_is_left_alone(
    cloud: FakeOpenStack,
    servers: Servers,
    clock: Clock,
    at: str,
    status: int,
    headers: dict[str, str],
    pause: float,
) -> None:
    cloud.add("n1")
    cloud.refuse[at] = [Refusal(status, headers)]
    assert f"HTTP {status}" in seen(servers).problem

    asked = len(cloud.asked)
    clock.now += pause - 1
    assert f"HTTP {status}" in seen(servers).problem
    assert len(cloud.asked) == asked
    clock.now += 2
    assert seen(servers).problem == ""


def test_a_slow_answer_costs_its_time_once(cloud: FakeOpenStack, servers: Servers) -> None:
    cloud.add("n1")
    seen(servers)
    cloud.refuse[NOVA] = [Refusal(200, delay=20.0)]
    first, second = servers.machines([REF, replace(REF, node="n2", name="n2")])

    assert "no answer" in first.problem
    assert "it is asked again in" in second.problem


@pytest.mark.parametrize("at", [TOKENS, NOVA])
def test_nothing_follows_to_another_server(cloud: FakeOpenStack, servers: Servers, at: str) -> None:
    cloud.add("n1")
    with FakeOpenStack() as other:
        cloud.refuse[at] = [Refusal(302, {"Location": f"{other.address}{at}"})]

        assert seen(servers).problem
        assert other.asked == []


def test_a_catalog_with_an_unsafe_address_is_refused(cloud: FakeOpenStack, servers: Servers) -> None:
    cloud.compute = "http://nova.example.com/v2.1"

    assert seen(servers).problem == "the address of Nova does not begin with https://"


def test_no_proxy_of_the_environment_gets_anything(
    cloud: FakeOpenStack, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.add("n1")
    monkeypatch.setitem(os.environ, "http_proxy", "http://127.0.0.1:9")

    assert seen(servers).problem == ""


def test_no_secret_is_shown(cloud: FakeOpenStack, servers: Servers, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    cloud.add("n1")
    cloud.refuse[NOVA] = [Refusal(500)]

    assert PASSWORD not in repr((seen(servers), cloud.access)) + caplog.text
    assert cloud.tokens[0] not in caplog.text


def test_without_the_extra_every_machine_says_so(
    monkeypatch: pytest.MonkeyPatch, cloud: FakeOpenStack
) -> None:
    monkeypatch.setattr(
        "reconciler.features.kubernikus.client.find_spec",
        lambda name: None if name == "keystoneauth1" else importlib.util.find_spec(name),
    )
    client = at_place(Place("x"), None, None)  # type: ignore[arg-type]  # it is not used

    assert "the extra `openstack`" in seen(client).problem


def test_nothing_of_keystoneauth1_is_loaded_before_the_first_request() -> None:
    code = (
        "import sys, reconciler.run, reconciler.features.kubernikus.client\n"
        "print([name for name in sys.modules if name.startswith('keystoneauth1')])"
    )
    ran = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)

    assert ran.stdout == "[]\n"
