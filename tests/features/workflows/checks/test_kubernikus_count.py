"""kubernikusCount: the nodes of the cluster, and those that Kubernikus should have made."""

from __future__ import annotations

import pytest

from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.model.check_reads import KubernikusAnswer, KubernikusQuery, ReadForChecks
from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, config, given, member

SECRET = {"name": "cloud-config", "namespace": "kube-system"}
QUERY = KubernikusQuery("c", "kube-system", "cloud-config")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (KubernikusAnswer(2), Verdict.PASSED),
        (KubernikusAnswer(1), Verdict.PASSED),
        (KubernikusAnswer(3), Verdict.FAILED),
        (KubernikusAnswer(problem="no answer"), Verdict.UNKNOWN),
        (None, Verdict.UNKNOWN),
    ],
)
def test_the_cluster_has_the_nodes_of_its_pools(answer: KubernikusAnswer | None, verdict: Verdict) -> None:
    read = ReadForChecks(kubernikus={QUERY: answer} if answer is not None else {})
    scene = given(member("b"), read=read)

    assert ask("kubernikusCount", scene, cluster="c", cloudProviderSecret=SECRET).verdict is verdict


@pytest.mark.parametrize(
    ("keys", "query"),
    [
        ({"cloudProviderSecret": SECRET}, QUERY),
        # As in maintenance-controller, half of a reference is none.
        ({"cloudProviderSecret": {"name": "x"}}, KubernikusQuery("c", file="provider/cloudprovider.conf")),
        (
            {"url": "https://k.example"},
            KubernikusQuery("c", file="provider/cloudprovider.conf", url="https://k.example"),
        ),
        ({"credentialsFile": "/etc/c"}, KubernikusQuery("c", file="/etc/c")),
    ],
)
def test_the_credentials_are_in_a_secret_or_a_file(keys: dict[str, object], query: KubernikusQuery) -> None:
    settings = config("kubernikusCount", cluster="c", **keys)

    assert CHECK_TYPES["kubernikusCount"].needs(settings).kubernikus == {query}
