"""What is the same in a network of IPv6 alone and in one of both versions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import timedelta
from ipaddress import ip_address, ip_network

import urllib3

from tests.nodes.agents import AGENTS, agents, event, fake_imds
from tests.nodes.cluster import NAMESPACE, Cluster, Object, await_
from tests.nodes.scene import SETTLE, WORK, controller, enforcing, namespace, prefer
from tests.nodes.workloads import pod_spec
from tests.support.controlplane.configuration import Family, in_url

PODS = 2
PAGES = {"/": "<html", "/metrics": "# TYPE", "/readyz": "ok"}
"""What the reconciler answers at each address, and what is in it."""

AGENT_PORT = 20270


def play_in(cluster: Cluster, families: Sequence[Family]) -> str:
    """Let agents and the reconciler drain a node in such a network, and ask them at each address."""
    with cluster.beside(families) as other, ExitStack() as stack:
        fakes = {node.name: stack.enter_context(fake_imds(node)) for node in other.nodes}
        began = time.monotonic()
        replicas = stack.enter_context(enforcing(other))
        ready = time.monotonic() - began
        stack.enter_context(other.applied(_open(agents(other))))
        await_("agents", lambda: len(other.ready_pods(AGENTS)) == len(other.nodes), seconds=60)
        leader = other.leader()
        homes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in replicas}
        node = next(node for node in other.nodes if node.name != homes.get(str(leader)))
        web = controller("Deployment", "web", pod_spec(serves=True, **prefer(node)), replicas=PODS)
        stack.enter_context(other.applied([namespace(), web]))
        await_("Pods that run", lambda: len(other.ready_pods(WORK)) == PODS, seconds=60)

        asked = [_ask(pod, families) for pod in replicas]
        with urllib3.PoolManager(retries=False, timeout=10) as pool:
            for each in other.nodes:
                for family in families:
                    url = f"http://{in_url(family.node(each.number))}:{AGENT_PORT}/metrics"
                    assert pool.request("GET", url).status == 200, f"no metrics at {url}"
        announced = time.time()
        for fake in fakes.values():
            # The document is that of the whole scale set.
            fake.announce(event(node, "Redeploy", "N1", timedelta(minutes=10)))
        await_("a cordon", lambda: other.cordoned(node), seconds=20)
        await_("the end of the drain", lambda: other.said(node, "MaintenanceDrained"), seconds=90)
        assert other.cordoned(node)
        here = [
            pod["metadata"]["name"] for pod in other.pods(WORK) if pod["spec"].get("nodeName") == node.name
        ]
        assert not here, f"{here} are still on {node.name}"
        for fake in fakes.values():
            fake.announce()
        await_("the uncordon", lambda: not other.cordoned(node), seconds=SETTLE + 60)
        await_("the end of the case", lambda: not other.in_maintenance(node), seconds=30)

        (cordon,) = other.cordons(node)
        requests = other.audit()
        ours = ip_network(families[0].pods)
        strange = {source for each in requests for source in each.sources if ip_address(source) not in ours}
        assert not strange, f"requests of the reconciler came from {strange}"
        assert not (refused := other.refused()), f"it was not allowed to ask {refused}"
        restarts = [
            pod["metadata"]["name"]
            for pod in other.pods(NAMESPACE)
            if any(status["restartCount"] for status in pod["status"]["containerStatuses"])
        ]
        assert not restarts, f"{restarts} were restarted"
    addresses = " and ".join(asked[0])
    cordoned = cordon.timestamp.timestamp() - announced
    return (
        f"Ready after {ready:.0f} s by probes of {asked[0][0]}. The page, /metrics and /readyz answered at"
        f" {addresses}. From IMDS to the cordon: {cordoned:.2f} s; {PODS} Pods moved, and the node came back."
        f" All {len(requests)} requests came from addresses of IPv6"
    )


def _ask(pod: Object, families: Sequence[Family]) -> list[str]:
    """Ask a Pod at each of its addresses, which are one of each family, and return these."""
    addresses = [each["ip"] for each in pod["status"]["podIPs"]]
    fit = [
        ip_address(address) in ip_network(family.pods)
        for address, family in zip(addresses, families, strict=True)
    ]
    assert all(fit), f"{pod['metadata']['name']} has the addresses {addresses}"
    with urllib3.PoolManager(retries=False, timeout=10) as pool:
        for address in addresses:
            for path, text in PAGES.items():
                answer = pool.request("GET", f"http://{in_url(address)}:8080{path}")
                assert answer.status == 200, f"{address}{path} answered {answer.status}"
                assert text in answer.data.decode(), f"{address}{path} answered {answer.data[:200]!r}"
    return addresses


def _open(objects: list[Object]) -> list[Object]:
    """Let agents show their metrics to all, by the patch of docs/agent.md."""
    (daemon_set,) = [each for each in objects if each["kind"] == "DaemonSet"]
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    container["args"][0] = f"--listen=:{AGENT_PORT}"
    return objects
