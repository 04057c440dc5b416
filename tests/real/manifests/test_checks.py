"""The permissions that docs/checks.md shows are enough for its examples, and for no other object."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.transports.sending import Http, NotSent
from reconciler.features.notices.transports.table import Tools, transport_of
from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.features.workflows.client import Client
from reconciler.features.workflows.kubernikus import Kubernikus
from reconciler.features.workflows.reading import Needs, read_for_checks
from reconciler.features.workflows.services import NAME
from reconciler.kubernetes.cloud_provider import KEY
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import ClusterError, Forbidden
from reconciler.model.grants import Account
from reconciler.model.leases import LeaseRef, LeaseTake
from reconciler.model.ports import Outside
from reconciler.model.values import replace
from reconciler.settings.grants import grants_as_manifests, grants_of
from reconciler.settings.load import parse_settings
from tests.real.manifests.applying import K8S
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.stub import Stub, json_answer

PAGE = (K8S.parent / "docs" / "checks.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
(EXAMPLE,) = re.findall(r"```yaml\n(.*?)```", SECTIONS["stagger"], re.DOTALL)
NAMESPACE = "node-maintenance"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def connected(cluster: ControlPlane, rights: str) -> Connection:
    """To the API server as the reconciler with these permissions alone."""
    cluster.api.create_namespace(NAMESPACE)
    account = {"metadata": {"name": "reconciler", "namespace": NAMESPACE}}
    cluster.api.create("serviceaccounts", account)
    for found in yaml.safe_load_all(rights):
        cluster.api.create(f"{found['kind'].lower()}s", found)
    return Connection(str(cluster.kubeconfig_for("reconciler", NAMESPACE)))


@pytest.fixture
def connection(cluster: ControlPlane) -> Connection:
    """The reconciler with the Role that `check-config --permissions` prints for the example."""
    file = yaml.safe_dump({"profiles": {"instances": {"check": yaml.safe_load(EXAMPLE)}}})
    printed = grants_as_manifests(grants_of(parse_settings(file, "file.yaml")), Account())
    return connected(cluster, printed.partition("---\n")[2])


@pytest.fixture
def ours(connection: Connection) -> Client:
    """Its client."""
    return Client(connection, lambda: None)


def needed() -> frozenset[LeaseRef]:
    """The Leases of the example."""
    ((instance),) = yaml.safe_load(EXAMPLE)
    kind = CHECK_TYPES["stagger"]
    return kind.needs(kind.config.model_validate(instance["config"], by_alias=True, by_name=False)).leases


def test_the_permissions_of_the_page_are_those_of_its_example(ours: Client, connection: Connection) -> None:
    (ref,) = needed()

    def known() -> bool:
        # The server learns of a new role a moment later.
        try:
            return ours.lease(ref) is None
        except ClusterError:
            return False

    wait_for("the permissions", known)
    for moment in (NOW, NOW + timedelta(hours=1)):
        ours.take_lease(LeaseTake(ref, "node-a", moment, timedelta(minutes=30), ours.lease(ref)))
    taken = ours.lease(ref)
    assert taken is not None
    assert (taken.holder, taken.transitions) == ("node-a", 1)

    other = LeaseRef(NAMESPACE, "reconciler-lock")
    with pytest.raises(Forbidden):
        ours.lease(other)
    outside = Outside(reader=Cluster(connection), clients={NAME: ours})
    read = read_for_checks(outside, Needs(frozenset({other}), all_pods=True))
    assert read.unread_leases == {other: f"needs get leases.coordination.k8s.io in {NAMESPACE}"}
    assert read.unread_pods == "needs list pods"


def test_the_same_permissions_keep_the_thread_of_a_notification(ours: Client) -> None:
    (ref,) = needed()
    keys = f"leaseName: {ref.name}, leaseNamespace: {ref.namespace}, period: 1h, token: t, channel: c"
    with closing(Stub(lambda asked: json_answer({"ok": True, "ts": f"17.{asked.number}"}))) as slack:
        config = f"{{{keys}, title: t, message: m, url: '{slack.url}'}}"
        text = f"instances: {{notify: [{{type: slackThread, name: tell, config: {config}}}]}}"
        (receiver,) = parse_settings(text, "x.yaml").receivers
        sender = transport_of(receiver, Tools(Http(), ours, lambda: datetime.now(UTC)))
        message = Delivery("tell", (), "title", (), body="text")

        def known() -> bool:
            try:
                sender.send(message)
            except NotSent:
                return False
            return True

        wait_for("the permissions", known)
        sender.send(message)

        threads = [json.loads(one.body).get("thread_ts") for one in slack.asked]
    lease = ours.lease(ref)
    assert lease is not None
    assert threads == [None, lease.holder, lease.holder]


def test_the_secret_of_kubernikus_may_be_read_and_no_other(cluster: ControlPlane) -> None:
    example, rights = re.findall(r"```yaml\n(.*?)```", SECTIONS["kubernikusCount"], re.DOTALL)
    ((instance),) = yaml.safe_load(example)
    kind = CHECK_TYPES["kubernikusCount"]
    settings = kind.config.model_validate(instance["config"], by_alias=True, by_name=False)
    (query,) = kind.needs(settings).kubernikus
    for name in (query.secret, "other"):
        metadata = {"name": name, "namespace": query.namespace}
        cluster.api.create("secrets", {"metadata": metadata, "stringData": {KEY: "[Global]"}})
    connection = connected(cluster, rights)

    def problem(name: str) -> str:
        asked = replace(query, secret=name)
        return Kubernikus(connection).ask([asked])[asked].problem

    # It was read: what is missing is in it.
    wait_for("the permission", lambda: problem(query.secret).startswith(f"{KEY} has no auth-url"))
    assert problem("other") == f"needs get secrets in {query.namespace}"
