"""A webhook of one namespace that does not answer, and what the drains of others see of it: nothing."""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from reconciler.drain.drainer import Drainer
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.scale.evictions import SharedEvictions
from reconciler.model.drains import DrainOrder, Phase
from tests.support.controlplane.api import Api
from tests.support.controlplane.configuration import make_certificates
from tests.support.controlplane.fill import Pool
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.webhooks import Guard, webhook
from tests.support.controlplane.workloads import deployment
from tests.support.fakes.clock import SystemClock
from tests.support.stub import Answer, Asked, Stub, json_answer

PODS = 25
"""On each node. Three nodes have more of them than there are places."""


class Webhook:
    """Hangs for the namespace `default` from the moment that `hangs` is set, and lets all others pass."""

    def __init__(self) -> None:
        self.hangs = False

    def __call__(self, asked: Asked) -> Answer:
        request = json.loads(asked.body)["request"]
        evil = request["namespace"] == "default"
        says: dict[str, Any] = {"uid": request["uid"], "allowed": not evil}
        if evil:
            says["status"] = {"code": 403, "message": "not now"}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": says}
        return Answer(hang=True) if evil and self.hangs else json_answer(review)


def _run(api: Api, name: str, node: str, namespace: str) -> None:
    selector = {"kubernetes.io/hostname": node}
    api.create("deployments", deployment(name, PODS, namespace=namespace, node_selector=selector))


def _ready(api: Api, node: str) -> bool:
    pods = api.list("pods", fields=f"spec.nodeName={node}")
    return [pod["status"].get("phase") for pod in pods] == ["Running"] * PODS


def test_a_node_is_drained_while_the_evictions_of_three_others_hang(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    api, pool = cluster.api, Pool("np")
    nodes = [api.create("nodes", pool.node(number)) for number in range(4)]
    names = [node["metadata"]["name"] for node in nodes]
    api.create_namespace("rich")
    for number, node in enumerate(names):
        _run(api, f"app-{number}", node, "rich" if number == 3 else "default")
    for node in names:
        wait_for(f"the pods of {node}", partial(_ready, api, node), seconds=120)
        api.patch("nodes", node, {"spec": {"unschedulable": True}})
    certificates = make_certificates(tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificates.serving, certificates.serving_key)
    answers = Webhook()
    stub = Stub(answers, serving)
    connection = Connection(str(cluster.kubeconfig))
    drainer = Drainer(
        SharedEvictions(connection, guard=lambda: None, prefix="node-maintenance.dev"), SystemClock()
    )
    guard = Guard("hangs", f"{stub.url}/", certificates.authority.read_bytes())
    try:
        with webhook(api, guard, "app-0", "not now"):
            answers.hangs = True
            for node in nodes:
                name, uid = node["metadata"]["name"], node["metadata"]["uid"]
                drainer.start(DrainOrder(name, uid, datetime.now(UTC), timedelta(minutes=5)))
            wait_for(
                "the end of the fourth drain",
                lambda: drainer.progress()[names[3]].phase is Phase.DRAINED,
                seconds=60,
            )
            shown = drainer.progress()
            drainer.close()
    finally:
        stub.close()
        drainer.close()
        connection.close()

    assert shown[names[3]].evicted == PODS
    # The API server gives up on a webhook after ten seconds, and says so. None has failed by then.
    assert not [one for name in names[:3] for one in shown[name].blockers]
    assert all(shown[name].evicted == 0 for name in names[:3])
