"""The thread that keeps moved pods in the cluster tells namespaces of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from jobs.runtime.line_keeper import Keeper
from reconciler.features.pods import NAME, PUBLISHED
from reconciler.features.pods.coming import ComingPod
from reconciler.features.pods.kept import MOVED_PODS
from reconciler.features.pods.moved import MovedPod
from reconciler.features.pods.published import Published, from_config_map
from reconciler.features.pods.publisher import MOST_NAMESPACES, Publisher, recorded_in
from reconciler.features.pods.telling import Night, Telling
from reconciler.kubernetes.kept_lines import KeptInCluster, unpacked
from reconciler.model.explanation import Moves
from reconciler.model.values import replace
from tests.features.pods.maps import Maps
from tests.support.builders import NOW, minutes
from tests.support.controlplane.processes import wait_for
from tests.support.stub import StubMaker

OWN = "node-maintenance"
MOVED = MovedPod(NOW, "shop/web-1", "uid-1", "a", "uid-a", why="Reboot")
COMING = ComingPod("team/etl", "b", Moves.MOVES, start=NOW + minutes(60), why="Reboot")
NIGHT = Night(NOW + minutes(1200), ZoneInfo("UTC"), {"b": (COMING,)})


@pytest.fixture
def maps(stub: StubMaker) -> Maps:
    return Maps(stub)


class Process:
    """What keeps pods and tells of them, without a wait between its writes."""

    def __init__(self, maps: Maps, *, publishes: bool = True) -> None:
        def guard() -> None: ...

        place = KeptInCluster(MOVED_PODS, maps.connection, OWN, guard)
        self.telling = Telling(Publisher(maps.connection, guard, OWN) if publishes else None)
        self._keeper: Keeper[MovedPod, MovedPod | None] = Keeper(
            place,
            lambda: NOW,
            lambda: timedelta(days=7),
            self.telling.fold,
            written=self.telling.turn,
            every=0.01,
        )

    def add(self, pod: MovedPod) -> None:
        self._keeper.add(pod)

    def tell(self, night: Night | None) -> None:
        """Do what follows from a pass."""
        if self.telling.note(night):
            self._keeper.add(None)

    def close(self) -> None:
        self._keeper.close()


@contextmanager
def keeping(maps: Maps, *, publishes: bool = True) -> Iterator[Process]:
    process = Process(maps, publishes=publishes)
    try:
        yield process
    finally:
        process.close()


def awaited(what: str, condition: Callable[[], object], maps: Maps) -> None:
    wait_for(what, condition, every=0.005, instead=lambda: (maps.writes(), maps.all))


def told(maps: Maps, namespace: str) -> Published | None:
    if (namespace, PUBLISHED) not in maps.all:
        return None
    return from_config_map(maps.data(namespace, PUBLISHED), namespace)


def recorded(maps: Maps) -> tuple[str, ...]:
    if (OWN, NAME) not in maps.all:
        return ()
    return recorded_in(unpacked(MOVED_PODS, maps.data(OWN, NAME)).beside)


def test_each_namespace_is_told_of_its_own_pods_and_is_recorded_before_it_is_written(maps: Maps) -> None:
    with keeping(maps) as keeper:
        keeper.add(MOVED)
        keeper.tell(NIGHT)
        awaited("both", lambda: told(maps, "shop") and told(maps, "team"), maps)

    shop, team = told(maps, "shop"), told(maps, "team")
    assert shop is not None
    assert team is not None
    assert (shop.moved, shop.coming) == ((MOVED,), ())
    assert (team.moved, team.coming, team.until) == ((), (COMING,), NIGHT.until)
    assert recorded(maps) == ("shop", "team")
    writes = maps.writes()
    assert f"POST {OWN}" in writes[: writes.index("POST team")]


def test_a_night_that_stays_the_same_is_written_once(maps: Maps) -> None:
    with keeping(maps) as keeper:
        keeper.tell(NIGHT)
        awaited("the namespace", lambda: told(maps, "team"), maps)
        keeper.tell(replace(NIGHT, nodes={"b": None}))
        keeper.add(MOVED)
        awaited("the next turn", lambda: told(maps, "shop"), maps)
        writes = maps.writes()
        keeper.tell(NIGHT)
        awaited("a look", lambda: keeper.telling.note(NIGHT), maps)

    assert [write for write in writes if write.endswith("team")] == ["POST team"]
    assert maps.writes() == writes


def test_pods_that_are_moved_before_the_first_pass_ends_leave_what_an_earlier_process_has_told(
    maps: Maps,
) -> None:
    with keeping(maps) as keeper:
        keeper.tell(NIGHT)
        awaited("the namespace", lambda: told(maps, "team"), maps)
    with keeping(maps) as keeper:
        keeper.add(MOVED)
        awaited("the pod", lambda: unpacked(MOVED_PODS, maps.data(OWN, NAME)).lines, maps)

    assert recorded(maps) == ("team",)
    assert told(maps, "team") is not None


def test_pods_of_a_node_that_are_not_known_now_are_those_that_were_known() -> None:
    unknown = replace(NIGHT, nodes={"b": None, "c": None})

    assert unknown.after(NIGHT).nodes == {"b": (COMING,), "c": None}
    assert replace(NIGHT, nodes={}).after(NIGHT).nodes == {}


def test_what_is_published_no_more_is_deleted(maps: Maps) -> None:
    with keeping(maps) as keeper:
        keeper.tell(NIGHT)
        awaited("the namespace", lambda: told(maps, "team"), maps)

        def off() -> bool:
            keeper.tell(None)
            return recorded(maps) == ()

        awaited("nothing recorded", off, maps)

    assert told(maps, "team") is None


def test_a_namespace_with_nothing_to_be_told_is_told_so_until_the_night_ends_also_by_another_process(
    maps: Maps,
) -> None:
    with keeping(maps) as keeper:
        keeper.tell(replace(NIGHT, nodes={"b": (replace(COMING, pod="old/etl"),)}))
        awaited("the namespace", lambda: told(maps, "old"), maps)
    with keeping(maps) as keeper:
        keeper.tell(NIGHT)
        awaited("the other one", lambda: told(maps, "team"), maps)
        nothing = told(maps, "old")
        assert nothing is not None
        assert (nothing.coming, nothing.until) == ((), NIGHT.until)

        def next_night() -> bool:
            keeper.tell(replace(NIGHT, until=NIGHT.until + timedelta(days=1)))
            return recorded(maps) == ("team",)

        awaited("the record", next_night, maps)

    assert told(maps, "old") is None
    assert told(maps, "team") is not None


def test_a_process_that_publishes_nothing_keeps_the_pods_alone(maps: Maps) -> None:
    with keeping(maps, publishes=False) as keeper:
        keeper.tell(NIGHT)
        keeper.add(MOVED)
        awaited("the pod", lambda: (OWN, NAME) in maps.all, maps)

    assert list(maps.all) == [(OWN, NAME)]


def test_names_of_namespaces_that_somebody_has_written_into_the_record_are_checked() -> None:
    assert recorded_in("shop ../../secrets Team") == ("shop",)
    assert len(recorded_in(" ".join(f"team-{number}" for number in range(3000)))) == MOST_NAMESPACES
