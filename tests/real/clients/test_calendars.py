"""Calendars in ConfigMaps and Secrets of a real API server, with the permissions of docs/calendars.md."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.calendars.reading import Calendars
from reconciler.kubernetes.connection import Connection
from reconciler.model.content import CalendarPlace, CalendarText, Holder
from reconciler.settings.yaml import read_yaml
from tests.support.controlplane.server import ControlPlane

PAGE = Path(__file__).parents[3] / "docs" / "calendars.md"
GOOD = "- {start: 2026-12-01, end: 2026-12-02}\n"
OTHER = "- {start: 2026-12-03, end: 2026-12-04}\n"
HOLIDAYS = CalendarPlace("c", Holder.CONFIG_MAP, namespace="platform", object="holidays")
SECRET = CalendarPlace("d", Holder.SECRET, namespace="platform", object="hidden", key="k")


def documented() -> list[dict[str, Any]]:
    """Return the Role and the RoleBinding of the page."""
    (block,) = [
        one
        for one in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        if one.startswith("apiVersion: rbac")
    ]
    return [read_yaml(document).value for document in block.split("---\n")]  # type: ignore[misc]  # mappings


@pytest.fixture
def ours(cluster: ControlPlane) -> Iterator[Connection]:
    """A connection of the ServiceAccount that the page gives permissions."""
    api = cluster.api
    for namespace in ("platform", "node-maintenance"):
        api.request("POST", "api/v1/namespaces", {"metadata": {"name": namespace}})
    account = {"metadata": {"name": "reconciler"}}
    api.request("POST", "api/v1/namespaces/node-maintenance/serviceaccounts", account)
    for one in documented():
        kind = f"{one['kind'].lower()}s"
        api.request("POST", f"apis/rbac.authorization.k8s.io/v1/namespaces/platform/{kind}", one)
    made = Connection(str(cluster.kubeconfig_for("reconciler", "node-maintenance")))
    yield made
    made.close()


def test_the_role_of_the_page_is_enough_for_its_object_and_for_no_other(
    cluster: ControlPlane, ours: Connection
) -> None:
    maps = "api/v1/namespaces/platform/configmaps"
    cluster.api.request("POST", maps, {"metadata": {"name": "holidays"}, "data": {"a": GOOD}})
    reader = Calendars(ours)

    found = reader.read([HOLIDAYS, SECRET])
    assert found["c"] == CalendarText(GOOD)
    assert found["d"].unread == "Secret platform/hidden/k: needs get secrets in platform"

    changed = {"metadata": {"name": "holidays"}, "data": {"a": OTHER}}
    cluster.api.request("PUT", f"{maps}/holidays", changed)
    assert reader.read([HOLIDAYS])["c"] == CalendarText(OTHER)

    cluster.api.request("DELETE", f"{maps}/holidays")
    assert reader.read([HOLIDAYS])["c"] == CalendarText(unread="there is no ConfigMap platform/holidays")


def test_a_secret_is_read(cluster: ControlPlane, connection: Connection) -> None:
    cluster.api.request("POST", "api/v1/namespaces", {"metadata": {"name": "platform"}})
    data = {"k": base64.b64encode(GOOD.encode()).decode()}
    cluster.api.request(
        "POST", "api/v1/namespaces/platform/secrets", {"metadata": {"name": "hidden"}, "data": data}
    )

    assert Calendars(connection).read([SECRET])["d"] == CalendarText(GOOD)
