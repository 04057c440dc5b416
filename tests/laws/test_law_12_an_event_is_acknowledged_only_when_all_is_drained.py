"""Law 12: an event is acknowledged only when every VM that it names is a node of this cluster and drained.

Two halves: what a pass writes for the agents to obey, and what an agent makes of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.plan import Notice
from reconciler.model.snapshot import Agents
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from reconciler.sources.imds import scheduled_events
from tests.laws.azure import Azure
from tests.laws.histories import Step, agent_steps, people_steps, second_reasons, waits
from tests.laws.hits import Hits
from tests.sources.imds.agent.fake_node_api import VM
from tests.sources.imds.agent.stepping import ALWAYS, NEVER, World, stepped_agent
from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes, vm_name
from tests.support.fakes.imds import Answer, Event, event, started
from tests.support.searching import examples
from tests.support.strategies import garbage, rfc1123
from tests.support.worlds import world_of

NAMES = ("n0", "n1", "n2")
OTHER = f"{VM}0"
STRANGER = vm_name(10)
"""A VM of the scale set that is no node; its name begins with that of a node's VM."""
TRUSTING = (
    "events: {Reboot: {acknowledge: true}, Redeploy: {acknowledge: true}}\nbudget: {maxUnavailable: 100%}"
)


def reported(
    *instances: int, event_id: str = "A1", kind: str = "Reboot", extra: tuple[object, ...] = ()
) -> Event:
    """An event of these nodes' VMs, and of what else it names."""
    when = rfc1123(NOW + minutes(14))
    named: list[Any] = [*(vm_name(number) for number in instances), *extra]
    return event(named, kind, event_id=event_id, not_before=when, duration=-1)


Happening = Callable[[Azure], None]


def _schedules(event_id: str, kind: str, names: set[int], extra: tuple[object, ...]) -> Happening:
    def happen(history: Azure) -> None:
        spelled = event_id.lower() if len(names) == 1 else event_id
        history.events[event_id] = reported(*sorted(names), event_id=spelled, kind=kind, extra=extra)

    return happen


def _changes(event_id: str, what: Callable[[Event], Event | None]) -> Happening:
    def happen(history: Azure) -> None:
        if event_id in history.events:
            changed = what(history.events.pop(event_id))
            if changed is not None:
                history.events[event_id] = changed

    return happen


def _renames(names: set[int], extra: tuple[object, ...]) -> Callable[[Event], Event]:
    return lambda one: {**one, "Resources": [*(vm_name(number) for number in sorted(names)), *extra]}


def _sleeps(name: str) -> Happening:
    return lambda history: history.late.add(name)


def _wakes(name: str) -> Happening:
    return lambda history: history.late.discard(name)


def _pod_comes(name: str, number: int) -> Happening:
    """No scheduler puts a pod on a closed node: one comes where nothing is closed, or to a DaemonSet."""

    def happen(history: Azure) -> None:
        if name not in history.cluster.nodes:
            return
        closed = history.cluster.nodes[name].unschedulable
        fresh = builders.pod(
            f"pod-{name}-{number}",
            name,
            owner="DaemonSet" if closed else "ReplicaSet",
            empty_dir=number % 2 == 0,
            deleting_until=history.now + minutes(2) if number == 3 else None,
        )
        history.cluster.add_pod(fresh)

    return happen


def _pods_end(history: Azure) -> None:
    for pod in list(history.cluster.pods.values()):
        if pod.deleting_until is not None:
            history.cluster.drop_pod(pod.uid)


def _twin_comes(name: str) -> Happening:
    def happen(history: Azure) -> None:
        if name in history.cluster.nodes:
            place = history.cluster.nodes[name].provider_id
            twin = builders.node("twin")
            history.cluster.replace_node(builders.on_vm(twin, int(place.rpartition("/")[2])))

    return happen


def _twin_goes(history: Azure) -> None:
    if "twin" in history.cluster.nodes:
        history.cluster.delete_node("twin")


ids = st.sampled_from(("A1", "B2"))
kinds = st.sampled_from(("Reboot", "Reboot", "Redeploy", "Freeze", "Preempt"))
some = st.sampled_from(({0, 1}, {0, 1}, {0, 1, 2}, {1}, {1, 2}))
extras: st.SearchStrategy[tuple[object, ...]] = st.sampled_from(((), (), (), (), (STRANGER,), (None,)))
names = st.sampled_from(NAMES)
azures: st.SearchStrategy[Happening] = st.one_of(
    st.builds(_schedules, ids, kinds, some, extras),
    st.builds(_changes, ids, st.builds(_renames, some, extras)),
    st.builds(_changes, ids, st.sampled_from((started, lambda one: None))),
    st.builds(_sleeps, names),
    st.builds(_wakes, names),
    st.builds(_pod_comes, names, st.integers(0, 3)),
    st.builds(_twin_comes, names),
    st.sampled_from((_pods_end, _twin_goes, lambda history: None)),
)
policies = st.builds(
    lambda meaning, budget, more: builders.settings(f"events: {{{meaning}}}\nbudget: {{{budget}}}\n{more}"),
    st.sampled_from(
        (
            "Reboot: {acknowledge: true}, Redeploy: {acknowledge: true}",
            "Reboot: {acknowledge: true}, Redeploy: {acknowledge: true}, Preempt: {acknowledge: true}",
            "Reboot: {acknowledge: true}, Freeze: {drain: true, acknowledge: true}",
            "Redeploy: {acknowledge: true}",
        )
    ),
    st.sampled_from(("maxUnavailable: 100%", "maxUnavailable: 100%", "maxUnavailable: 2")),
    st.sampled_from(("", "", "uncordon: {settle: 0s}", "publish: [drainsafe]", "drain: {timeout: 5m}")),
)
beginnings = st.builds(_schedules, ids, st.sampled_from(("Reboot", "Redeploy")), some, st.just(()))
Steps = list[tuple[Happening | Step, int, timedelta]]


def three_nodes(policy: Settings) -> Azure:
    """Three nodes of one scale set, each with a pod that may go at once."""
    nodes = [builders.on_vm(builders.node(name), number) for number, name in enumerate(NAMES)]
    pods = [builders.pod(f"web-{name}", name) for name in NAMES]
    return Azure(world_of(nodes, pods), policy)


ACKNOWLEDGED = Hits()


@ACKNOWLEDGED.at_least(600)
@settings(max_examples=examples(150))
@given(
    policies,
    beginnings,
    st.lists(
        st.tuples(
            st.one_of(azures, azures, people_steps, agent_steps, second_reasons), st.integers(1, 3), waits
        ),
        max_size=8,
    ),
)
def test_over_any_history_what_is_acknowledged_is_drained_and_removed_by_the_next_pass(
    policy: Settings, first: Happening, steps: Steps
) -> None:
    history = three_nodes(policy)
    first(history)
    history.go_on(passes=3)
    assert history.wrongs() == []
    for happen, passes, wait in steps:
        happen(history)
        history.publish()
        for _ in range(passes):
            history.look()
            ACKNOWLEDGED.count(len(history.acknowledged()))
            assert history.wrongs() == []
        history.wait(wait)


def drained(*instances: int, policy: str = TRUSTING, kind: str = "Reboot") -> Azure:
    """The nodes of an event's VMs, each drained for it, and the event acknowledged."""
    history = three_nodes(builders.settings(policy))
    history.events["A1"] = reported(*instances, kind=kind)
    history.go_on(passes=3)
    assert history.acknowledged() == {f"n{number}": ["A1"] for number in instances}
    return history


FITS, WAITS = Hits(), Hits()


@FITS.at_least(24)
@WAITS.at_least(6)
@settings(max_examples=examples(60))
@given(
    st.sets(st.integers(0, 2), min_size=1),
    st.sampled_from(("Reboot", "Redeploy")),
    st.sampled_from(("maxUnavailable: 100%", "maxUnavailable: 1", "maxUnavailable: 2")),
    st.sampled_from(("", "publish: [drainsafe]", "drain: {maxConcurrentNodes: 1}")),
)
def test_an_event_of_drained_nodes_is_acknowledged_on_each_of_them_and_reported_once(
    instances: set[int], kind: str, budget: str, more: str
) -> None:
    """All nodes fit the budget: an event of more nodes waits forever, because none of them returns."""
    policy = f"events: {{{kind}: {{acknowledge: true}}}}\nbudget: {{{budget}}}\n{more}"
    history = three_nodes(builders.settings(policy))
    history.events["A1"] = reported(*sorted(instances), kind=kind)
    history.go_on(passes=6)
    fits = "100%" in budget or len(instances) <= int(budget[-1])
    named = {f"n{number}" for number in instances}

    FITS.count(fits)
    WAITS.count(not fits)
    assert set(history.acknowledged()) == (named if fits else set())
    spoken = [
        write.node
        for write in history.api.done
        if isinstance(write.content, Notice) and write.content.reason == "MaintenanceAcknowledged"
    ]
    assert sorted(spoken) == (sorted(named) if fits else [])
    assert history.wrongs() == []


def _opens(name: str) -> Happening:
    return lambda history: history.cluster.cordon(name, on=False)


def _comes_back_as_new(name: str) -> Happening:
    def happen(history: Azure) -> None:
        place = history.cluster.nodes[name].provider_id
        history.cluster.replace_node(replace(builders.node(name, uid="another"), provider_id=place))

    return happen


def _has_to_go_on_draining(name: str) -> Happening:
    """A second event lets more pods go than the first."""

    def happen(history: Azure) -> None:
        history.cluster.clear_node(name, builders.pod("cache", name, empty_dir=True))
        history.cluster.annotate(name, REQUEST, '{"kind":"Preempt"}')

    return happen


def _goes_blind(name: str) -> Happening:
    def happen(history: Azure) -> None:
        history.cluster.agents = Agents(installed=True, not_ready=frozenset((name,)))

    return happen


def _names(*instances: int, extra: tuple[object, ...] = ()) -> Happening:
    return _changes("A1", _renames(set(instances), extra))


def _only_asked_to(name: str, change: Happening) -> Happening:
    """The agents of the other nodes publish nothing new."""

    def happen(history: Azure) -> None:
        history.late = {*NAMES} - {name}
        change(history)

    return happen


AMISS = {
    "a node is opened": _opens("n1"),
    "a node is another one": _comes_back_as_new("n1"),
    "a node vanishes": lambda history: history.cluster.delete_node("n1"),
    "a node is drained again": _has_to_go_on_draining("n1"),
    "an agent goes blind": _goes_blind("n1"),
    "it names a stranger": _names(0, 1, extra=(STRANGER,)),
    "it names a stranger to one node alone": _only_asked_to("n1", _names(0, 1, extra=(STRANGER,))),
    "it names what is no name": _names(0, 1, extra=(None,)),
    "it names an open node": _names(0, 1, 2),
    "another Node has the same VM": _twin_comes("n1"),
    "it has started on one node": _only_asked_to("n1", _changes("A1", started)),
    "it has gone on one node": _only_asked_to("n1", _changes("A1", lambda one: None)),
    "it has started": _changes("A1", started),
    "it has gone": _changes("A1", lambda one: None),
    "it is a freeze now": _changes("A1", lambda one: {**one, "EventType": "Freeze"}),
}


@pytest.mark.parametrize("what", AMISS)
def test_it_is_removed_from_every_node_by_the_next_pass(what: str) -> None:
    history = drained(0, 1)
    AMISS[what](history)
    history.go_on()

    assert history.acknowledged() == {}


@pytest.mark.parametrize("what", [what for what in AMISS if "one node" not in what])
def test_it_is_never_given_where_it_was_so_from_the_beginning(what: str) -> None:
    history = three_nodes(builders.settings(TRUSTING))
    history.events["A1"] = reported(0, 1)
    # Drained, and its agent is not asked yet.
    history.go_on(passes=2)
    assert history.acknowledged() == {}
    AMISS[what](history)
    history.go_on()

    assert history.acknowledged() == {}
    assert history.wrongs() == []


def test_a_node_that_is_not_empty_yet_keeps_the_others_waiting() -> None:
    history = three_nodes(builders.settings(TRUSTING))
    history.cluster.clear_node("n1", builders.pod("slow", "n1", deleting_until=NOW + minutes(9)))
    history.events["A1"] = reported(0, 1)
    history.go_on(passes=4)
    assert history.acknowledged() == {}
    history.cluster.clear_node("n1")
    history.go_on(passes=3)

    assert history.acknowledged() == {"n0": ["A1"], "n1": ["A1"]}


def test_a_second_event_of_drained_nodes_is_acknowledged_once_it_is_on_their_records() -> None:
    """It has the same kind and date, so that no drain starts again."""
    history = drained(0, 1)
    history.events["B2"] = reported(0, 1, event_id="B2")
    history.go_on()
    assert history.acknowledged() == {"n0": ["A1"], "n1": ["A1"]}
    history.go_on()

    assert history.acknowledged() == {"n0": ["A1", "B2"], "n1": ["A1", "B2"]}


def test_an_event_that_does_not_say_which_vms_it_is_about_is_not_acknowledged() -> None:
    """Another source reports it, with the same ID, as a reboot of this node; its other VMs are unknown."""
    history = three_nodes(builders.settings(TRUSTING))
    condition = builders.condition(
        "VMEventScheduled", "True", f"Reboot Scheduled: {rfc1123(NOW + minutes(14))}. EventId: A1"
    )
    history.cluster.set_condition("n0", condition)
    history.events["A1"] = {**reported(0), "Resources": []}
    history.go_on(passes=4)

    record = builders.case_of(history.cluster.nodes["n0"])
    assert record.drain is not None
    assert record.drain.done is not None
    assert history.acknowledged() == {}


# The agent's half.

days = st.lists(
    st.builds(
        event,
        st.sampled_from([VM, OTHER, [VM, OTHER]]),
        st.sampled_from(["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]),
        event_id=st.sampled_from(["A", "B", "C"]),
        source=st.sampled_from(["Platform", "User"]),
    ).flatmap(lambda one: st.sampled_from([one, one, started(one)])),
    max_size=3,
    unique_by=lambda one: one["EventId"],
)
words = st.none() | st.lists(st.sampled_from(["A", "b", "C", "Z"]), max_size=2).map(json.dumps) | garbage


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Its agent looks at its Node at every step, and what is acknowledged stays scheduled."""
    with stepped_agent(reread=ALWAYS, starts=False) as made:
        yield made


@pytest.fixture
def forgetful_world() -> Iterator[World]:
    with stepped_agent(reread=NEVER) as made:
        yield made


STARTED, NAMELESS = Hits(), Hits()


@STARTED.at_least(50)
@settings(max_examples=examples(60))
@given(st.lists(st.tuples(days, words), max_size=3))
def test_over_any_days_at_imds_only_what_the_node_names_is_started_and_once(
    world: World, course: list[tuple[list[Event], str | None]]
) -> None:
    world.begin()
    allowed: set[str] = set()
    # What is named at random is rarely there.
    for now, text in (*course, ([event(VM, event_id="D")], '["d"]')):
        world.imds.announce(*now)
        world.api.say(text)
        world.step()
        ours = [one for one in now if VM in one["Resources"]]
        assert set(world.api.published_ids() or ()) == {one["EventId"] for one in ours}
        named = {one.casefold() for one in scheduled_events.from_acknowledgement(text)}
        allowed |= {
            one["EventId"]
            for one in ours
            if one["EventStatus"] == "Scheduled" and one["EventId"].casefold() in named
        }
        assert sorted(world.imds.acknowledged) == sorted(allowed)

    STARTED.count(len(allowed))
    assert world.posts == len(allowed)


@NAMELESS.at_least(24)
@settings(max_examples=examples(60))
@given(st.lists(days, min_size=1, max_size=3), st.none() | st.just('["Z"]') | garbage)
def test_over_any_days_at_imds_without_an_annotation_nothing_is_ever_started(
    world: World, course: list[list[Event]], text: str | None
) -> None:
    world.begin()
    world.api.say(text)
    for now in course:
        world.imds.announce(*now)
        world.step()
        NAMELESS.count(any(one["EventStatus"] == "Scheduled" and VM in one["Resources"] for one in now))

    assert world.posts == 0


def test_an_acknowledgement_is_posted_once_even_if_imds_still_shows_the_event_as_scheduled(
    world: World,
) -> None:
    world.begin()
    world.imds.announce(event(VM, event_id="A"))
    world.api.say('["A"]')
    world.step(times=5)

    assert world.imds.acknowledged == ["A"]


def test_what_has_started_is_not_posted(world: World) -> None:
    world.begin()
    world.imds.announce(started(event(VM, event_id="A")))
    world.api.say('["A"]')
    world.step()

    assert world.posts == 0


def test_what_is_removed_before_it_is_posted_is_not_posted(forgetful_world: World) -> None:
    """The agent has seen the word, and knows of no event yet; the word has gone when the event comes."""
    forgetful_world.api.say('["A"]')
    forgetful_world.step()
    forgetful_world.api.say(None)
    forgetful_world.imds.announce(event(VM, event_id="A"))
    forgetful_world.step()

    assert forgetful_world.posts == 0


def test_while_imds_is_silent_nothing_is_posted(world: World) -> None:
    """What it called scheduled, and would not start at first, may have started since."""
    world.begin()
    world.imds.announce(event(VM, event_id="A"))
    world.api.say('["A"]')
    world.imds.refuse(Answer(503))
    world.step()
    world.imds.script(Answer(500))
    world.step()
    assert world.posts == 1
    world.step()

    assert world.imds.acknowledged == ["A"]


def test_an_event_that_does_not_say_whose_it_is_is_not_posted(world: World) -> None:
    world.begin()
    world.imds.announce({**event(VM, event_id="A"), "Resources": []})
    world.api.say('["A"]')
    world.step()

    assert world.api.published_ids() == ["A"]
    assert world.posts == 0
