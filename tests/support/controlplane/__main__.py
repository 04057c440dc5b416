"""A control plane for a person: a small AKS-shaped cluster on loopback, until Ctrl-C."""

import argparse
import json
import signal
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.binaries import NoControlPlane
from tests.support.controlplane.fill import Pool, fill, vm_event
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.workloads import budget, daemon_set, deployment

POOLS = (Pool("np"), Pool("spot", spot=True), Pool("win", windows=True))
HEARTBEAT = 60  # seconds; conditions without a heartbeat for some minutes count as unknown


def main() -> int:
    """Start, fill, explain, wait, stop."""
    arguments = argparse.ArgumentParser(prog="python -m tests.support.controlplane", description=__doc__)
    arguments.add_argument(
        "--nodes", type=int, default=12, help="in three zones and three pools (default: 12)"
    )
    nodes: int = arguments.parse_args().nodes

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())

    began = time.monotonic()
    try:
        with ControlPlane() as server:
            names = fill(server.kubeconfig, nodes=nodes, pools=POOLS)
            add_workloads(server.api)
            print(f"up after {time.monotonic() - began:.1f} s, {nodes} nodes\n")
            print(explanation(server, names[0]), flush=True)
            while not ended.wait(HEARTBEAT):
                beat(server.api)
    except NoControlPlane as error:
        print(error, file=sys.stderr)
        return 1
    print("stopped")
    return 0


def add_workloads(api: Api) -> None:
    """Some with a budget that allows a drain, one with a budget that never does, on the third node."""
    system, on_spot = {"agentpool": "np"}, {"agentpool": "spot"}
    third = {**system, "topology.kubernetes.io/zone": "westeurope-3"}
    for workload, most_away in (
        (deployment("web", 9, node_selector=system), "34%"),
        (deployment("queue", 6, node_selector=on_spot, tolerate_spot=True), 1),
        (deployment("reports", 4, node_selector={"agentpool": "win"}), 1),
        (deployment("ledger", 1, node_selector=third), 0),
    ):
        api.create("deployments", workload)
        api.create("poddisruptionbudgets", budget(workload["metadata"]["name"], max_unavailable=most_away))
    api.create("daemonsets", daemon_set("node-log"))


def beat(api: Api) -> None:
    """A new heartbeat for every condition; Ready=False stays Ready=False."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for node in api.list("nodes"):
        beats = [{"type": each["type"], "lastHeartbeatTime": moment} for each in node["status"]["conditions"]]
        body = {"status": {"conditions": beats}}
        try:
            api.patch("nodes", node["metadata"]["name"], body, kind="strategic", subresource="status")
        except ApiError as error:
            if error.status != 404:
                raise


def explanation(server: ControlPlane, node: str) -> str:
    """What a person can do with it."""
    soon = datetime.now(UTC) + timedelta(minutes=15)
    event = json.dumps({"status": {"conditions": [vm_event("Reboot", soon)]}})
    request = f'{{"kind":"Reboot","notBefore":"{soon:%Y-%m-%dT%H:%M:%SZ}"}}'
    return f"""\
kubeconfig  {server.kubeconfig}
audit log   {server.audit_log}
kubectl     {server.kubectl}

  export KUBECONFIG={server.kubeconfig} PATH={server.kubectl.parent}:$PATH

Announce a maintenance as node-problem-detector does, in 15 minutes:

  kubectl patch node {node} --subresource=status \\
    -p '{event}'

Ask for one by hand:

  kubectl annotate node {node} 'node-maintenance.dev/request={request}'

Ctrl-C ends it and removes everything."""


if __name__ == "__main__":
    sys.exit(main())
