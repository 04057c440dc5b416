"""k8s/flow-control: what the reconciler writes has another priority than what it lists."""

import urllib3
import yaml

from tests.real.manifests.applying import applied, ca_file
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
# What each request may be, for the API server classifies it before it looks for the object.
REQUESTS = {
    ("PUT", LEASES.format("node-maintenance") + "/reconciler-lock"): "leader-election",
    ("GET", LEASES.format("node-maintenance") + "/reconciler-lock"): "leader-election",
    ("POST", "/api/v1/namespaces/default/pods/p/eviction"): "workload-high",
    ("PATCH", "/api/v1/nodes/n"): "workload-high",
    ("GET", "/api/v1/nodes/n"): "workload-high",
    ("PATCH", "/api/v1/namespaces/node-maintenance/configmaps/node-maintenance-ledger"): "workload-high",
    ("GET", "/api/v1/nodes?limit=1"): "node-maintenance-lists",
    ("GET", "/api/v1/pods?limit=1"): "node-maintenance-lists",
    ("GET", "/api/v1/namespaces/default/pods?limit=1"): "node-maintenance-lists",
    ("GET", "/api/v1/namespaces/default/pods/p"): "workload-low",
    ("PUT", LEASES.format("default") + "/l"): "workload-low",
}


def test_writes_go_before_lists(controlplane: ControlPlane) -> None:
    controlplane.start_apiserver()
    controlplane.clean()
    with applied(controlplane, "base"), applied(controlplane, "flow-control"):
        levels = {
            level["metadata"]["uid"]: level["metadata"]["name"]
            for level in controlplane.api.list("prioritylevelconfigurations")
        }
        config = yaml.safe_load(
            controlplane.kubeconfig_for("reconciler", "node-maintenance").read_text("utf-8")
        )
        token = config["users"][0]["user"]["token"]
        with urllib3.PoolManager(ca_certs=ca_file(controlplane)) as pool:

            def level(method: str, path: str) -> str:
                """The name of the priority level that the request had."""
                headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"}
                answer = pool.request(method, controlplane.url + path, headers=headers, body=b"{}")
                return str(levels[answer.headers["X-Kubernetes-PF-PriorityLevel-UID"]])

            wait_for(
                "the FlowSchemas to apply",
                lambda: (
                    {level(*request) for request in REQUESTS if request[0] != "GET"} > {"workload-high"}
                    and level("GET", "/api/v1/nodes?limit=1") == "node-maintenance-lists"
                ),
            )
            assert {request: level(*request) for request in REQUESTS} == REQUESTS
