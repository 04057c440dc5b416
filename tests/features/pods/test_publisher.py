"""ConfigMaps in namespaces: written on change only, and whatever one namespace does harms that one only."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from reconciler.features.pods import PUBLISHED
from reconciler.features.pods.publisher import AGAIN, APART, AT_ONCE, IN_A_ROW, Publisher
from reconciler.model.errors import LockLost
from tests.features.pods.maps import Maps
from tests.support.stub import Answer, Asked, StubMaker, status

DATA = {"moved": "", "tonight": "{}"}
OTHER = {"moved": "", "tonight": ""}
QUOTA = 'configmaps "x" is forbidden: exceeded quota: all, requested: count/configmaps=1'
ENDS = "unable to create new content in namespace ending because it is being terminated"
NO_RIGHT = 'configmaps is forbidden: User "x" cannot create resource "configmaps"'


class Turns:
    """A publisher whose clock the test moves."""

    def __init__(self, maps: Maps) -> None:
        self.now = 0.0
        self.locked = True
        self.publisher = Publisher(maps.connection, self._check, "node-maintenance", seconds=lambda: self.now)

    def _check(self) -> None:
        if not self.locked:
            raise LockLost("lost")

    def turn(self, wanted: dict[str, dict[str, str]], *gone: str, after: float = APART) -> frozenset[str]:
        self.now += after
        return self.publisher.turn(wanted, gone)


@pytest.fixture
def maps(stub: StubMaker) -> Maps:
    return Maps(stub)


@pytest.fixture
def turns(maps: Maps) -> Turns:
    return Turns(maps)


def refusing(namespace: str, code: int, message: str) -> Callable[[Asked], Answer | None]:
    def refuse(asked: Asked) -> Answer | None:
        there = f"/namespaces/{namespace}/" in asked.path and asked.method == "POST"
        return status(code, "Forbidden", message) if there else None

    return refuse


def test_a_namespace_is_written_only_when_something_has_changed(maps: Maps, turns: Turns) -> None:
    requests = []
    for data in (DATA, DATA, OTHER, OTHER):
        turns.turn({"shop": data})
        requests.append(len(maps.stub.asked))

    assert requests == [2, 2, 4, 4]
    assert maps.writes() == ["POST shop", "PATCH shop"]
    assert maps.data("shop", PUBLISHED) == OTHER


def test_another_process_writes_nothing_again(maps: Maps, turns: Turns) -> None:
    turns.turn({"shop": DATA})
    Turns(maps).turn({"shop": DATA})

    assert maps.writes() == ["POST shop"]


def test_changes_that_follow_each_other_are_written_at_a_bounded_pace(maps: Maps, turns: Turns) -> None:
    for number in range(10):
        turns.turn({"shop": {**DATA, "leftOut": str(number)}}, after=APART / 5)

    assert len(maps.writes()) == 2


def test_of_very_many_namespaces_one_turn_writes_some_and_later_ones_the_rest(
    maps: Maps, turns: Turns
) -> None:
    wanted = {f"team-{number}": DATA for number in range(AT_ONCE + 5)}
    turns.turn(wanted)
    assert len(maps.writes()) == AT_ONCE

    turns.turn(wanted, after=1)
    assert len(set(maps.writes())) == AT_ONCE + 5


@pytest.mark.parametrize(
    ("code", "message", "says"),
    [
        (403, QUOTA, "exceeded quota"),
        (403, ENDS, "being terminated"),
        (403, NO_RIGHT, "needs create configmaps in bad, see k8s/pods"),
        (403, 'admission webhook "x" denied the request: no', "denied the request"),
    ],
    ids=["quota", "terminating", "no right", "webhook"],
)
def test_a_namespace_that_refuses_is_said_once_and_becomes_rare_and_the_others_are_written(
    code: int, message: str, says: str, maps: Maps, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    maps.refuse = refusing("bad", code, message)
    with caplog.at_level(logging.WARNING):
        for number in range(20):
            turns.turn({"bad": DATA, "shop": {**DATA, "leftOut": str(number)}}, after=AGAIN)

    (said,) = caplog.messages
    assert said.startswith("pods are not published in the namespace bad: ")
    assert says in said
    assert maps.writes().count("POST bad") == 5
    assert maps.data("shop", PUBLISHED)["leftOut"] == "19"

    maps.refuse = lambda asked: None
    turns.turn({"bad": DATA}, after=7 * 3600)
    assert maps.data("bad", PUBLISHED) == DATA


def test_the_same_refusal_of_many_namespaces_is_said_once_and_ends_the_turn(
    maps: Maps, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    maps.refuse = lambda asked: status(403, "Forbidden", NO_RIGHT) if asked.method == "POST" else None
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            turns.turn({f"team-{number}": DATA for number in range(40)}, after=1)

    assert len(caplog.messages) == 1
    assert len(maps.writes()) == 3 * IN_A_ROW


def test_a_namespace_that_does_not_exist_any_more_is_no_problem(
    maps: Maps, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    maps.missing.add("ended")
    for _ in range(5):
        turns.turn({"ended": DATA, "shop": DATA})

    assert maps.writes().count("POST ended") == 1
    assert turns.turn({}, "ended", after=7 * 3600) == {"ended"}
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ({}, "which is not of a reconciler"),
        ({"node-maintenance.dev/reconciler-namespace": "other"}, "which is of the reconciler in other"),
    ],
    ids=["of a person", "of another reconciler"],
)
def test_a_name_that_is_taken_is_left_alone_and_said(
    labels: dict[str, str], says: str, maps: Maps, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    taken = {"metadata": {"name": PUBLISHED, "uid": "u", "labels": labels}, "data": {"mine": "yes"}}
    maps.all["shop", PUBLISHED] = taken
    for _ in range(3):
        turns.turn({"shop": DATA})
    assert turns.turn({}, "shop", after=7 * 3600) == {"shop"}

    assert maps.writes() == []
    assert maps.data("shop", PUBLISHED) == {"mine": "yes"}
    (said,) = caplog.messages
    assert says in said


def test_what_a_namespace_has_changed_or_deleted_comes_with_the_next_change(maps: Maps, turns: Turns) -> None:
    turns.turn({"shop": DATA, "team": DATA})
    maps.all["shop", PUBLISHED]["data"] = None
    del maps.all["team", PUBLISHED]

    turns.turn({"shop": OTHER, "team": OTHER})

    assert (maps.data("shop", PUBLISHED), maps.data("team", PUBLISHED)) == (OTHER, OTHER)


def test_a_namespace_that_has_nothing_to_be_told_any_more_has_no_config_map(maps: Maps, turns: Turns) -> None:
    turns.turn({"shop": DATA, "team": DATA})

    assert turns.turn({"team": DATA}, "shop") == {"shop"}
    assert list(maps.all) == [("team", PUBLISHED)]


def test_without_the_lock_nothing_is_written(maps: Maps, turns: Turns) -> None:
    turns.locked = False
    with pytest.raises(LockLost):
        turns.turn({"shop": DATA})

    assert maps.writes() == []
