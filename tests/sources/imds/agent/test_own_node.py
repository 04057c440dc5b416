"""The agent's way to the API server: the way in, the errors, one patch."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    Rejected,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from reconciler.sources.imds.agent.own_node import Access, Annotations, OwnNode, OwnNodeClient, in_cluster
from tests.kubernetes.test_paths import HOSTILE
from tests.sources.imds.agent.fake_node_api import (
    ACKNOWLEDGE,
    KEY,
    NODE,
    PREFIX,
    PROVIDER_ID,
    Failure,
    FakeNodeApi,
)


def client(api: FakeNodeApi, token_file: Path, node: str = NODE) -> OwnNodeClient:
    return OwnNodeClient(Access(api.address, token_file, None), node, PREFIX)


def test_a_node_is_read(api: FakeNodeApi, token_file: Path) -> None:
    assert client(api, token_file).read() == OwnNode("uid-1", PROVIDER_ID, spot=False, published=None)


def test_both_annotations_are_read_with_the_node_and_by_themselves(
    api: FakeNodeApi, token_file: Path
) -> None:
    reader = client(api, token_file)
    assert reader.read_annotations() == Annotations("uid-1", published=None, acknowledge=None)
    api.node["metadata"]["annotations"] |= {KEY: "text", ACKNOWLEDGE: "ids"}

    assert reader.read_annotations() == Annotations("uid-1", published="text", acknowledge="ids")
    assert reader.read() == OwnNode("uid-1", PROVIDER_ID, spot=False, published="text", acknowledge="ids")


def test_another_prefix_is_another_pair_of_annotations(api: FakeNodeApi, token_file: Path) -> None:
    api.node["metadata"]["annotations"] |= {KEY: "text", ACKNOWLEDGE: "ids", "example.com/acknowledge": "x"}
    other = OwnNodeClient(Access(api.address, token_file, None), NODE, "example.com")

    assert other.read_annotations() == Annotations("uid-1", published=None, acknowledge="x")


def test_publishing_writes_the_published_annotation_alone(api: FakeNodeApi, token_file: Path) -> None:
    client(api, token_file).publish("uid-1", "text")

    assert api.writes == [{"metadata": {"uid": "uid-1", "annotations": {KEY: "text"}}}]


@pytest.mark.parametrize(
    ("label", "value", "spot"),
    [
        ("kubernetes.azure.com/scalesetpriority", "spot", True),
        ("karpenter.sh/capacity-type", "spot", True),
        ("karpenter.sh/capacity-type", "on-demand", False),
    ],
)
def test_labels_identify_a_spot_node(
    api: FakeNodeApi, token_file: Path, label: str, value: str, *, spot: bool
) -> None:
    api.node["metadata"]["labels"] = {label: value}

    assert client(api, token_file).read().spot is spot


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, Unauthorized),
        (403, Forbidden),
        (409, Conflict),
        (422, Rejected),
        (429, TooManyRequests),
        (500, Unreachable),
        (0, Unreachable),
    ],
)
def test_refusals_are_our_errors_in_the_servers_words(
    api: FakeNodeApi, token_file: Path, status: int, error: type[ClusterError]
) -> None:
    api.fail("PATCH", [Failure(status, "no, because", {"Retry-After": "3"})])

    with pytest.raises(ClusterError) as caught:
        client(api, token_file).publish("uid-1", "text")

    assert type(caught.value) is error
    assert caught.value.status == status
    if status:
        assert str(caught.value) == "no, because"
        assert caught.value.retry_after == 3


def test_another_node_under_the_name_is_not_written_to(api: FakeNodeApi, token_file: Path) -> None:
    with pytest.raises(Conflict):
        client(api, token_file).publish("uid-0", "text")

    assert api.published is None


def test_no_token_is_no_credentials(api: FakeNodeApi, tmp_path: Path) -> None:
    with pytest.raises(Unauthorized, match="no token"):
        client(api, tmp_path / "none").read()


def test_a_ca_that_is_none_is_no_credentials(token_file: Path) -> None:
    with pytest.raises(Unauthorized, match="no usable CA"):
        OwnNodeClient(Access("https://127.0.0.1:9", token_file, token_file), NODE, PREFIX).read()


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("10.0.0.1", "https://10.0.0.1:443"),
        ("fd00::1", "https://[fd00::1]:443"),
        ("x.example", "https://x.example:443"),
    ],
)
def test_a_pod_finds_its_api_server(host: str, server: str) -> None:
    access = in_cluster({"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"})

    assert access.server == server
    assert access.token_file == Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def test_outside_of_a_pod_there_is_no_way_in() -> None:
    with pytest.raises(Unauthorized, match="KUBERNETES_SERVICE_HOST"):
        in_cluster({})


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:20])
def test_a_hostile_node_name_is_refused(tmp_path: Path, name: str) -> None:
    access = Access("http://127.0.0.1:1", tmp_path / "token", None)

    with pytest.raises(ValueError, match="not the name of a Node"):
        OwnNodeClient(access, name, PREFIX)
