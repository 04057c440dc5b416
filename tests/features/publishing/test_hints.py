"""Scheduling hints: who gets them, what they say, and when they go."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.features.publishing.hints import bears_hints, taint_of
from reconciler.features.publishing.hints import signs as hints_of
from reconciler.features.publishing.settings import EnabledSigns, Hints
from reconciler.model.event import Kind
from reconciler.model.keys import OwnKeys
from reconciler.model.node import PREFERENCE, Node, Taint
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import CaseRecord, State
from reconciler.model.values import replace
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.release import release
from reconciler.profiles.case import CaseView
from reconciler.run import PARTS
from tests.laws.histories import History, small_world
from tests.support import builders
from tests.support.builders import NOW, PREFIX, RECORD, REQUEST, minutes

BOTH = "hints: {taint: true, label: true}"
HELD = f"{BOTH}\nbudget: {{maxUnavailable: 0}}"
KEY = OwnKeys(PREFIX).deadline
TAINT = taint_of(PREFIX)
THEIRS = Taint("dedicated", "gpu", "NoSchedule")
ON = Hints(taint=True, label=True)


def asking(deadline: datetime | None = None, *, asks: bool = True) -> JudgedEvent:
    return replace(builders.judged(builders.event()), deadline=deadline, asks=asks)


def signs(
    node: Node, *events: JudgedEvent, unknown: tuple[str, ...] = (), hints: Hints = ON, open_: bool = True
) -> NodeSigns:
    state = State.REQUIRED if open_ else State.OPERATIONAL
    decision = CaseDecision(state, CaseRecord(), view=CaseView(events, unknown))
    return hints_of(node, decision, EnabledSigns((), PREFIX, NOW, hints))


def marked(label: str = "1700000000") -> Node:
    """A node that has both hints."""
    return replace(builders.node(labels={KEY: label}), taints=(TAINT,))


def hinted(node: Node) -> tuple[str | None, bool]:
    return node.labels.get(KEY), TAINT in node.taints


@pytest.mark.parametrize(
    ("events", "value"),
    [
        pytest.param((asking(deadline=NOW),), str(int(NOW.timestamp())), id="its deadline"),
        pytest.param((asking(deadline=NOW + minutes(9)), asking(deadline=NOW)), str(int(NOW.timestamp()))),
        pytest.param((asking(deadline=NOW), asking(deadline=None)), "0", id="one may come at any moment"),
    ],
)
def test_the_label_is_the_earliest_deadline_of_the_events(
    events: tuple[JudgedEvent, ...], value: str
) -> None:
    found = signs(builders.node(), *events)

    assert found.labels == {KEY: value}
    assert [(getattr(one, "taint", None), getattr(one, "wanted", None)) for one in found.writes] == [
        (TAINT, True)
    ]
    assert signs(marked(value), *events) == NodeSigns()


@pytest.mark.parametrize(
    ("hints", "label", "taints"),
    [(Hints(label=True), {KEY: "0"}, 0), (Hints(taint=True), {}, 1), (Hints(), {}, 0)],
)
def test_each_hint_has_its_own_setting(hints: Hints, label: dict[str, str], taints: int) -> None:
    found = signs(builders.node(), asking(), hints=hints)

    assert found.labels == label
    assert len(found.writes) == taints


def test_another_effect_under_our_key_is_another_taint() -> None:
    node = builders.node(taints=(TAINT.key,))

    assert not bears_hints(node, PREFIX)
    assert signs(node) == NodeSigns()
    assert TAINT.effect == PREFERENCE


@pytest.mark.parametrize(
    ("event", "open_"),
    [
        pytest.param(asking(asks=False), True, id="it requires no drain"),
        pytest.param(asking(), False, id="the case has ended"),
    ],
)
def test_the_hints_go_with_the_last_event_that_requires_a_drain(event: JudgedEvent, open_: bool) -> None:
    found = signs(marked(), event, open_=open_)

    assert found.labels == {KEY: None}
    assert [getattr(one, "wanted", None) for one in found.writes] == [False]


def test_hints_of_an_event_that_an_unreadable_source_reported_stay_as_they_are() -> None:
    blind = ("imds reported Reboot and can't be read",)

    assert signs(marked(), unknown=blind) == NodeSigns()
    assert signs(builders.node(), unknown=blind) == NodeSigns()
    off = signs(marked(), unknown=blind, hints=Hints())
    assert (off.labels, len(off.writes)) == ({KEY: None}, 1)


# Over whole passes.


def history(text: str = HELD) -> History:
    """A node with a request, and taints of others."""
    scene = History(small_world(), builders.settings(text))
    scene.cluster.taint("n0", (THEIRS,))
    scene.cluster.annotate("n0", REQUEST, builders.DRAIN_NOW)
    scene.until_still()
    return scene


def test_a_node_that_waits_has_its_hints_until_the_event_is_gone() -> None:
    scene = history()
    assert hinted(scene.cluster.nodes["n0"]) == ("0", True)
    assert hinted(scene.cluster.nodes["n1"]) == (None, False)

    scene.cluster.annotate("n0", REQUEST, None)
    scene.until_still()

    node = scene.cluster.nodes["n0"]
    assert hinted(node) == (None, False)
    assert node.taints == (THEIRS,)


def test_a_changed_label_alone_only_shows_something() -> None:
    scene = history("budget: {maxUnavailable: 0}")
    scene.settings = builders.settings(f"budget: {{maxUnavailable: 0}}\n{BOTH}")
    plan, outcomes = scene.look()
    (node,) = (one for one in plan.nodes if one.node == "n0")

    assert not node.acts
    assert node.holds
    assert sorted(one.action for one in outcomes) == ["publish", "taint"]


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param({"labels": {"pool": "b"}}, id="no longer selected"),
        pytest.param({"labels": {"pool": "a", f"{PREFIX}/ignore": "true"}}, id="ignored"),
    ],
)
@pytest.mark.parametrize("with_record", [True, False])
def test_a_node_that_leaves_the_fleet_loses_its_hints_once(
    leave: dict[str, dict[str, str]], with_record: bool
) -> None:
    scene = History(small_world(), builders.settings(f"{HELD}\nnodeSelector: {{pool: a}}"))
    scene.cluster.label("n0", "pool", "a")
    scene.cluster.annotate("n0", REQUEST, builders.DRAIN_NOW)
    scene.until_still()
    assert hinted(scene.cluster.nodes["n0"]) == ("0", True)
    if not with_record:
        scene.cluster.annotate("n0", RECORD, None)
    for key, value in leave["labels"].items():
        scene.cluster.label("n0", key, value)
    scene.until_still()
    node = scene.cluster.nodes["n0"]

    assert hinted(node) == (None, False)
    assert (RECORD in node.annotations) is with_record


def test_a_node_outside_the_fleet_without_an_event_loses_its_hints() -> None:
    scene = History(small_world(), builders.settings(f"{HELD}\nnodeSelector: {{pool: a}}"))
    scene.cluster.label("n0", KEY, "1700000000")
    scene.cluster.taint("n0", (TAINT, THEIRS))
    scene.until_still()

    assert hinted(scene.cluster.nodes["n0"]) == (None, False)
    assert scene.cluster.nodes["n0"].taints == (THEIRS,)


def test_a_node_that_a_person_drains_keeps_its_hints() -> None:
    scene = history()
    node = scene.cluster.nodes["n0"]
    record = node.annotations[RECORD]
    scene.cluster.annotate("n0", RECORD, "not a record")
    scene.until_still()
    assert hinted(scene.cluster.nodes["n0"]) == ("0", True)
    scene.cluster.annotate("n0", RECORD, record)
    scene.until_still()

    assert hinted(scene.cluster.nodes["n0"]) == ("0", True)


def test_releasing_takes_the_hints_off() -> None:
    scene = history()
    node = scene.cluster.nodes["n0"]
    signs = PARTS.removed(node, PREFIX)
    patch = release(node, PREFIX, signs, reset=False)
    assert patch is not None
    scene.api.patch_node(patch)
    for sign in signs.writes:
        sign.send(scene.world.outside.client)
    after = scene.cluster.nodes["n0"]

    assert hinted(after) == (None, False)
    assert after.taints == (THEIRS,)
    assert set(after.annotations) == {REQUEST, builders.UID}


def test_a_hint_without_a_record_is_taken_off() -> None:
    scene = History(small_world(), builders.settings())
    scene.cluster.label("n0", KEY, "1700000000")
    scene.cluster.taint("n0", (TAINT, THEIRS))
    scene.until_still()

    assert hinted(scene.cluster.nodes["n0"]) == (None, False)
    assert scene.cluster.nodes["n0"].taints == (THEIRS,)


def test_a_reboot_with_a_date_shows_its_deadline() -> None:
    scene = History(small_world(), builders.settings(HELD))
    date = NOW + timedelta(hours=6)
    scene.cluster.annotate(
        "n0", REQUEST, f'{{"kind":"{Kind.REBOOT}","notBefore":"{date:%Y-%m-%dT%H:%M:%SZ}"}}'
    )
    scene.until_still()

    assert hinted(scene.cluster.nodes["n0"]) == (str(int((date - minutes(15)).timestamp())), True)
