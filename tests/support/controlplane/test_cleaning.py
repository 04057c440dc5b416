"""The order in which a control plane is emptied."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection
from contextlib import closing
from typing import Any, cast

from tests.support.controlplane.api import Api
from tests.support.controlplane.cleaning import clean
from tests.support.controlplane.etcd import Etcd, folders
from tests.support.stub import Answer, Asked, Stub, json_answer


class _Store:
    """Keys as etcd has them, and what was asked of the API server, with the kinds that were left then.

    Each deletion is a revision, and the API server's cache comes to one at the second question.
    """

    def __init__(self, *keys: str) -> None:
        self.keys = set(keys)
        self.revision = 0
        self.awaited: list[tuple[str, int, set[str]]] = []
        self.made: list[tuple[str, set[str]]] = []
        self.looks = 0

    def all_keys(self) -> frozenset[str]:
        return frozenset(self.keys)

    def delete(self, keys: Collection[str]) -> dict[str, int]:
        self.keys -= set(keys)
        self.revision += bool(keys)
        return dict.fromkeys(folders(sorted(keys)), self.revision)

    def has_cached(self, resource: str, revision: int) -> bool:
        self.awaited.append((resource, revision, set(folders(self.keys))))
        return self.awaited.count(self.awaited[-1]) > 1

    def create(self, resource: str, body: dict[str, Any]) -> dict[str, Any]:
        self.made.append((resource, set(folders(self.keys))))
        self.keys.add(f"/registry/{resource}/default/{body['metadata']['name']}")
        self.looks = 0
        return {**body, "status": {"phase": "Pending"}}

    def find(self, resource: str, name: str) -> dict[str, Any] | None:
        """A node of kwok's, or a pod that kwok has started at the second look."""
        if resource == "nodes":
            return {"metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}}
        if f"/registry/{resource}/default/{name}" not in self.keys:
            return None
        self.looks += 1
        return {"status": {"phase": "Running" if self.looks > 1 else "Pending"}}

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
    assert store.awaited[:4] == [
        *[("cronjobs", 1, {"jobs", "replicasets", *pods})] * 2,
        *[("jobs", 3, pods)] * 2,
    ]


def test_a_cluster_is_clean_once_the_caches_have_seen_the_last_deletions() -> None:
    store = _Store("/registry/minions/a", "/registry/pods/default/web", "/registry/deployments/default/web")

    clean(cast("Api", store), cast("Etcd", store), frozenset())

    # The last one of deployments, and of pods, is what their controller, and kwok, was asked with.
    assert {kind: last for kind, last, _ in store.awaited} == {"deployments": 2, "pods": 4, "nodes": 5}


def test_kwok_sees_pods_go_while_it_knows_their_nodes() -> None:
    store = _Store("/registry/minions/a", "/registry/pods/default/web", "/registry/secrets/default/key")

    clean(cast("Api", store), cast("Etcd", store), frozenset())

    assert store.made == [("pods", {"minions"})]
    assert store.keys == set()


def test_no_two_objects_of_a_kind_go_in_one_revision() -> None:
    asked: list[list[str]] = []

    def answer(one: Asked) -> Answer:
        done = [each["request_delete_range"]["key"] for each in json.loads(one.body)["success"]]
        asked.append([base64.b64decode(key).decode() for key in done])
        return json_answer({"header": {"revision": str(40 + one.number)}})

    with closing(Stub(answer)) as stub, closing(Etcd(stub.url)) as etcd:
        last = etcd.delete(
            {f"/registry/{one}" for one in ("pods/x/a", "pods/x/b", "jobs/x/a", "events/a", "events/b")}
        )

    assert asked == [
        ["/registry/events/a", "/registry/events/b"],
        ["/registry/jobs/x/a", "/registry/pods/x/a"],
        ["/registry/pods/x/b"],
    ]
    assert last == {"jobs": 41, "pods": 42}
