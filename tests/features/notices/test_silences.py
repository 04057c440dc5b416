"""Which silences there should be after a pass."""

from __future__ import annotations

from datetime import timedelta

from reconciler.features.notices.silences import (
    Silence,
    WantedSilences,
    changes,
    comment_of,
    uid_in,
    wanted_silences,
)
from reconciler.model.errors import Forbidden
from reconciler.model.values import replace
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.features.notices.following import ASKING, CALM, asking, entries
from tests.support import builders
from tests.support.builders import NOW, REQUEST
from tests.support.worlds import carry_on, look

TEXT = "notify: [{name: all, alertmanager: {url: 'http://127.0.0.1:1'}}]"
(ENTRY,) = entries(TEXT)
A = ("uid-a", "a", "Reboot")


def wanted(world: World) -> WantedSilences:
    """Run a pass, and return what it wants."""
    plan, outcomes = look(world, builders.settings(CALM + TEXT))
    carry_on(world)
    return wanted_silences(ENTRY, plan, outcomes, ())


def silence(uid: str = "uid-a", *, minutes: float = 60, id: str = "1") -> Silence:  # noqa: A002 - as it is there
    assert ENTRY.alertmanager is not None
    matchers = tuple(one.of("a") for one in ENTRY.alertmanager.matchers)
    return Silence(uid, NOW + timedelta(minutes=minutes), matchers, comment_of(uid, "a", ""), id)


def test_a_node_is_silenced_from_its_cordon_to_its_uncordon() -> None:
    world = asking("a")

    assert wanted(world).nodes == (A,)
    assert wanted(world).nodes == (A,)
    world.cluster.annotate("a", REQUEST, None)
    wanted(world)
    last = wanted(world)
    assert last.nodes == ()
    assert {"uid-a", "uid-rest"} <= last.ours


def test_a_node_that_could_not_be_cordoned_is_not_known() -> None:
    world = asking("a")

    def refuse(write: Call) -> None:
        if write.what == "patch_node":
            raise Forbidden("no")

    world.api.before_write = refuse

    assert wanted(world) == WantedSilences((), frozenset({"uid-a"}), frozenset({"uid-a", "uid-rest"}))


def test_only_selected_nodes_are_silenced() -> None:
    world = asking("a")
    (entry,) = entries(TEXT.replace("name: all", "name: all, nodeSelector: {team: shop}"))
    plan, outcomes = look(world, builders.settings(CALM + TEXT))
    assert wanted_silences(entry, plan, outcomes, ()).nodes == ()

    world = asking("b")
    world.cluster.nodes["b"] = builders.node("b", annotations={REQUEST: ASKING}, labels={"team": "shop"})
    text = CALM + TEXT.replace("name: all", "name: all, nodeSelector: {team: shop}")
    plan, outcomes = look(world, builders.settings(text))
    assert wanted_silences(entry, plan, outcomes, ()).nodes == (("uid-b", "b", "Reboot"),)


def test_a_silence_is_opened_once_and_extended_before_it_ends() -> None:
    nodes = WantedSilences((A,), ours=frozenset({"uid-a"}))
    (made,), ended = changes(ENTRY, nodes, (), NOW)

    assert (made.uid, made.id, made.ends, ended) == ("uid-a", "", NOW + timedelta(hours=1), ())
    assert uid_in(made.comment) == "uid-a"
    assert changes(ENTRY, nodes, [silence(minutes=41)], NOW) == ((), ())
    (extended,), ended = changes(ENTRY, nodes, [silence(minutes=39)], NOW)
    assert (extended.id, extended.ends, ended) == ("1", NOW + timedelta(hours=1), ())


def test_what_is_not_wanted_ends_if_it_is_ours() -> None:
    found = [silence("uid-a"), silence("uid-gone", id="2"), silence("uid-theirs", id="3")]
    ours = WantedSilences(ours=frozenset({"uid-a", "uid-gone"}))

    assert changes(ENTRY, ours, found, NOW) == ((), ("1", "2"))
    assert changes(ENTRY, replace(ours, unknown=frozenset({"uid-a"})), found, NOW) == ((), ("2",))


def test_of_two_silences_of_a_node_one_stays() -> None:
    nodes = WantedSilences((A,), ours=frozenset({"uid-a"}))

    assert changes(ENTRY, nodes, [silence(minutes=50, id="2"), silence(minutes=45)], NOW) == ((), ("1",))
