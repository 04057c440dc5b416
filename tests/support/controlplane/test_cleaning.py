"""The order in which a control plane is emptied."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from tests.support.controlplane.api import Api
from tests.support.controlplane.cleaning import clean
from tests.support.controlplane.etcd import Etcd, folders


class _Store:
    """Keys as etcd has them, and what was asked of the API server, with what was left then."""

    def __init__(self, *keys: str) -> None:
        self.keys = set(keys)
        self.listed: list[tuple[str, set[str]]] = []
        self.made: list[tuple[str, set[str]]] = []
        self.looks = 0

    def all_keys(self) -> frozenset[str]:
        return frozenset(self.keys)

    def delete(self, keys: Collection[str]) -> None:
        self.keys -= set(keys)

    def list(self, resource: str, *, metadata_only: bool) -> list[Any]:
        assert metadata_only
        self.listed.append((resource, set(folders(self.keys))))
        return []

    def create(self, resource: str, body: dict[str, Any]) -> dict[str, Any]:
        self.made.append((resource, set(folders(self.keys))))
        self.keys.add(f"/registry/{resource}/default/{body['metadata']['name']}")
        self.looks = 0
        return body

    def get(self, resource: str, name: str) -> dict[str, Any]:
        """Its controller has seen it at the second look."""
        assert f"/registry/{resource}/default/{name}" in self.keys
        self.looks += 1
        return {"status": {"observedGeneration": 1} if self.looks > 1 else {}}


def test_the_controllers_see_what_makes_pods_go_before_the_pods_go() -> None:
    kinds = ("cronjobs", "deployments", "jobs", "replicasets", "pods")
    made = [f"/registry/{kind}/default/web" for kind in kinds]
    store = _Store(*made, "/registry/pods/default/first")

    clean(cast("Api", store), cast("Etcd", store), frozenset({"/registry/pods/default/first"}))

    assert store.keys == {"/registry/pods/default/first"}
    pods = {"pods"}
    assert store.made == [
        ("deployments", {"jobs", "replicasets", *pods}),
        ("replicasets", pods),
    ]
    assert store.listed[:2] == [("cronjobs", {"jobs", "replicasets", *pods}), ("jobs", pods)]
