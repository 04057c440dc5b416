"""Law 20 on the API server: the plan from a watch and from what changed is that of a new process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from jobs.runtime.environment import Target
from jobs.runtime.outside import Wiring
from jobs.runtime.supervised import Ending
from jobs.runtime.watches import NodeWatcher
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.reader import PlainReader
from reconciler.kubernetes.scale.node_store import NodeStore
from reconciler.model.node import Node
from reconciler.model.plan import Plan
from reconciler.model.ports import AtOnce, LookRequest
from reconciler.model.values import replace
from reconciler.passes.observe import wanted
from reconciler.passes.store import Store
from reconciler.run import PARTS, rehearse
from tests.support import builders
from tests.support.controlplane.fill import Pool, fill, no_vm_event, patch_conditions, vm_event
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes.threads import refused

SETTINGS = builders.settings("budget: {maxUnavailable: 3}\nevents: {Reboot: {start: Early}}")
WANTED = wanted(SETTINGS, PARTS)


class _Both:
    """A process that follows the nodes, and one that lists them in the plain way."""

    def __init__(self, connection: Connection) -> None:
        self.nodes, self._store = NodeStore(), Store(PARTS)
        wiring = Wiring(connection, Target(), nodes=self.nodes)
        # What it reads ahead depends on what it has read before.
        self._follows = replace(wiring.to_read(SETTINGS), ahead=None)
        reader = PlainReader(connection)
        self._lists = replace(self._follows, reader=reader, beside=AtOnce())

    def listed(self) -> dict[str, Node]:
        """All nodes as a list has them."""
        return dict(self._lists.reader.look(LookRequest(WANTED)).nodes)

    def wait(self) -> None:
        """Wait until the watch has shown what there is."""

        wait_for("the watch to show all changes", lambda: self.nodes.newest() == self.listed(), seconds=60)

    def plans(self) -> tuple[Plan, Plan]:
        """What follows from the watch and what changed, and what follows from a list."""
        now = datetime.now(UTC)
        return rehearse(self._follows, SETTINGS, now, self._store), rehearse(self._lists, SETTINGS, now)


@pytest.fixture
def both(cluster: ControlPlane) -> Iterator[_Both]:
    """Both, and the watch, which runs."""
    fill(cluster.kubeconfig, nodes=12)
    with closing(Connection(str(cluster.kubeconfig))) as connection:
        made = _Both(connection)
        with NodeWatcher(connection, WANTED, made.nodes, lambda cause: None, Ending()):
            yield made


def _changes(cluster: ControlPlane, chance: random.Random) -> list[Callable[[], object]]:
    """Return what may happen to a node."""
    names = [node["metadata"]["name"] for node in cluster.api.list("nodes")]
    name, api = chance.choice(names), cluster.api
    soon = datetime.now(UTC) + timedelta(hours=chance.choice((1, 30)))
    beat = no_vm_event(now=datetime.now(UTC) - timedelta(minutes=chance.choice((0, 60))))
    request = chance.choice((builders.DRAIN_NOW, None))

    def recreate() -> None:
        body = api.get("nodes", name)
        api.delete("nodes", name)
        kept = {key: body["metadata"][key] for key in ("name", "labels")}
        api.create("nodes", {**body, "metadata": kept})

    return [
        lambda: patch_conditions(api, name, vm_event("Reboot", soon)),
        lambda: patch_conditions(api, name, beat),
        lambda: api.patch("nodes", name, {"spec": {"unschedulable": chance.random() < 0.5}}),
        lambda: api.patch("nodes", name, {"metadata": {"annotations": {builders.REQUEST: request}}}),
        lambda: api.patch("nodes", name, {"metadata": {"annotations": {"theirs": str(chance.random())}}}),
        lambda: api.patch("nodes", name, {"metadata": {"labels": {"agentpool": chance.choice("ab")}}}),
        recreate,
        lambda: fill(cluster.kubeconfig, nodes=1, pools=[Pool(f"p{chance.randrange(1000)}")]),
        lambda: api.delete("nodes", name) if len(names) > 6 else None,
    ]


def test_after_random_changes_both_plans_are_the_same(cluster: ControlPlane, both: _Both) -> None:
    chance = random.Random(20)
    rested = 0
    for _ in range(25):
        for _ in range(chance.randrange(1, 5)):
            chance.choice(_changes(cluster, chance))()
        both.wait()
        remembered, fresh = both.plans()
        assert remembered == fresh
        rested += len(fresh.fleet) - len(fresh.nodes)
    assert rested > 50


def test_after_the_api_server_was_gone_both_plans_are_the_same(cluster: ControlPlane, both: _Both) -> None:
    both.wait()
    both.plans()
    cluster.stop_apiserver()
    cluster.start_apiserver()
    name = cluster.api.list("nodes")[0]["metadata"]["name"]
    patch_conditions(cluster.api, name, vm_event("Reboot", datetime.now(UTC) + timedelta(hours=1)))
    both.wait()

    remembered, fresh = both.plans()
    assert remembered == fresh
    assert name in {node.node for node in fresh.nodes}


def test_other_settings_are_followed_by_the_thread_that_runs(cluster: ControlPlane) -> None:
    fill(cluster.kubeconfig, nodes=1)
    (name,) = [node["metadata"]["name"] for node in cluster.api.list("nodes")]
    more = wanted(
        builders.settings("overrides: [{nodeSelector: {team: x}, events: {Reboot: {drain: true}}}]"), PARTS
    )
    nodes, ending = NodeStore(), Ending()
    with (
        closing(Connection(str(cluster.kubeconfig))) as connection,
        NodeWatcher(connection, WANTED, nodes, lambda cause: None, ending) as watcher,
        refused(lambda thread: thread == "watch of nodes"),
    ):
        wait_for("the watch", nodes.newest)
        watcher.want(more)
        cluster.api.patch("nodes", name, {"metadata": {"labels": {"team": "x"}}})
        wait_for("the label", lambda: "team" in getattr(nodes.newest().get(name), "labels", ()))
        assert watcher.trouble() == ""
