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

    def all_keys(self) -> frozenset[str]:
        return frozenset(self.keys)

    def delete(self, keys: Collection[str]) -> None:
        self.keys -= set(keys)

    def list(self, resource: str, *, metadata_only: bool) -> list[Any]:
        assert metadata_only
        self.listed.append((resource, set(folders(self.keys))))
        return []


def test_what_makes_pods_is_seen_to_be_gone_before_the_pods_go() -> None:
    made = [f"/registry/{kind}/default/web" for kind in ("deployments", "replicasets", "pods")]
    store = _Store(*made, "/registry/pods/default/first")

    clean(cast("Api", store), cast("Etcd", store), frozenset({"/registry/pods/default/first"}))

    assert store.keys == {"/registry/pods/default/first"}
    assert store.listed[:2] == [("deployments", {"replicasets", "pods"}), ("replicasets", {"pods"})]
