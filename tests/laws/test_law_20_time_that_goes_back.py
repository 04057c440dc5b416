"""Law 20 where the versions of the API server go back, because somebody has restored a backup of etcd."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.kubernetes import watching
from reconciler.kubernetes.connection import JSON, NODES, Connection
from reconciler.kubernetes.scale.node_store import NodeChange, NodeStore
from reconciler.kubernetes.watching import Watched, Watching
from reconciler.model.node import Node
from reconciler.model.ports import Look, LookRequest
from reconciler.model.values import replace
from reconciler.passes.observe import wanted
from reconciler.run import PARTS, rehearse
from reconciler.simulation.world import World
from tests.laws.histories import History, Step, people_steps, platform_steps, small_world, waits
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.searching import QUARTER, examples
from tests.support.worlds import store_of

SETTINGS = builders.settings("budget: {maxUnavailable: 2}")


class _Server(Watched[Any]):
    """The nodes of a world, as lists have them. Its watches show nothing."""

    path = NODES
    accept = JSON
    query: dict[str, str] = {}  # noqa: RUF012 - as the class that it stands for

    def __init__(self, world: World) -> None:
        self._world = world
        self.asked = 0

    def list(self) -> tuple[list[Node], str]:
        self.asked += 1
        return list(self._world.cluster.nodes.values()), self.newest()

    def newest(self) -> str:
        return self._world.cluster.revision


class _Silent:
    """Stands for the connection: each watch ends at once, and has shown nothing."""

    @contextmanager
    def stream(self, request: object) -> Iterator[object]:
        del request
        yield SimpleNamespace(content_type=JSON, read_some=lambda size: b"", interrupt=lambda: None)


class _Follower:
    """A process that follows the nodes of a world by lists alone."""

    def __init__(self, world: World) -> None:
        self.server, self.nodes = _Server(world), NodeStore(lambda: 0.0)
        self._api = world.api
        self.nodes.begin(wanted(SETTINGS, PARTS))
        self._watching: Watching[Any, NodeChange] = Watching(
            cast("Connection", _Silent()), self.server, self.nodes
        )

    def list(self) -> None:
        """Let the watch list the nodes once more."""
        self.nodes.stale = True
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watching, "pause_after", lambda *_: 0.0)
            while next(self._watching) is not None:
                pass

    def wrote(self) -> None:
        """Note the nodes as answers to our writes show them."""
        for node in self._api.cluster.nodes.values():
            self.nodes.note_written(node)

    def look(self, request: LookRequest) -> Look:
        """See ClusterReader."""
        look, followed = self._api.look(replace(request, changes=False)), self.nodes.followed(request.nodes)
        return look if followed is None else replace(look, nodes=followed.nodes, changed=followed.changed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)


BACK = Hits()
_DOES = st.sampled_from(("list", "write", "keep", "restore", "nothing"))


@BACK.at_least(30, QUARTER)
@settings(max_examples=examples(150, QUARTER))
@given(st.lists(st.tuples(st.one_of(platform_steps, people_steps), waits, _DOES), min_size=3, max_size=14))
def test_after_one_list_the_plan_is_that_of_a_new_process_also_if_the_versions_went_back(
    steps: list[tuple[Step, Any, str]],
) -> None:
    history = History(small_world(), SETTINGS)
    world, store = history.world, store_of(history.world)
    follower = _Follower(world)
    follows = replace(world.outside, reader=cast("Any", follower))
    kept = world.cluster.back_up("ledger")
    for happen, wait, does in steps:
        happen(history)
        history.wait(wait)
        match does:
            case "write":
                follower.wrote()
            case "keep":
                kept = world.cluster.back_up("ledger")
            case "restore":
                BACK.count(kept.revision != world.cluster.revision)
                world.cluster.restore(kept)
            case _:
                pass
        if does not in ("nothing", "write"):
            follower.list()
            remembered = rehearse(follows, SETTINGS, world.now, store)
            assert remembered == rehearse(world.outside, SETTINGS, world.now)


def test_a_restore_is_said_and_the_nodes_are_listed_again(caplog: pytest.LogCaptureFixture) -> None:
    world = small_world()
    follower = _Follower(world)
    follower.list()
    kept = world.cluster.back_up("ledger")
    world.cluster.cordon("n0")
    follower.list()
    assert follower.server.asked == 2
    assert follower.nodes.newest()["n0"].unschedulable

    world.cluster.restore(kept)
    follower.list()

    assert follower.server.asked == 4
    assert not follower.nodes.newest()["n0"].unschedulable
    assert [each.levelname for each in caplog.records if "went back" in each.getMessage()] == ["WARNING"]
