"""What an object says once its event is over: drained, late, missed, or cancelled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.features.publishing.node_maintenances import IN_LEDGER, changes
from reconciler.features.publishing.objects import MISSED, Maintenance, Stage
from reconciler.features.publishing.simulation import KIND
from reconciler.model.errors import Forbidden
from reconciler.model.event import Kind
from reconciler.model.holds import INTERNAL
from reconciler.model.values import replace
from reconciler.passes.plugin import Fleet
from reconciler.simulation.api import Call
from tests.laws.histories import History
from tests.passes.decide.test_outcomes import announced, begun, history, look, say
from tests.support import builders
from tests.support.builders import NOW, known, minutes, pod, published
from tests.support.worlds import maintenances

SHOWN = "publish: [nodemaintenances]"
HELD = f"budget: {{maxUnavailable: 1, ignore: {{notReadyFor: 10h}}}}\n{SHOWN}"
FREE = f"budget: {{maxUnavailable: 100%}}\n{SHOWN}"


def held() -> History:
    """A node that the budget holds."""
    return history(HELD)


def free() -> History:
    """A node that may be drained at once."""
    return history(FREE)


def blocked() -> History:
    """A node whose drain can't end."""
    scene = history(FREE, pods=(pod("stuck", deleting_until=NOW),))
    scene.cluster.finalizers.add("uid-shop-stuck")
    return scene


def the_object(scene: History) -> Maintenance:
    maintenance: Maintenance
    (maintenance,) = maintenances(scene.cluster).values()
    return maintenance


@pytest.mark.parametrize(
    ("make", "steps", "expected"),
    [
        pytest.param(free, (announced(), begun()), Stage.DONE, id="drained"),
        pytest.param(free, (announced(),), Stage.CANCELLED, id="drained, and it never started"),
        pytest.param(held, (announced(),), Stage.GONE, id="held, and it never started"),
        pytest.param(held, (announced(), begun()), Stage.MISSED, id="held, and it started"),
        pytest.param(blocked, (announced(), begun()), Stage.MISSED, id="blocked, and it started"),
        pytest.param(free, (begun(),), Stage.MISSED, id="without notice"),
    ],
)
def test_an_object_ends_as_what_happened(
    make: Callable[[], History], steps: tuple[str, ...], expected: Stage
) -> None:
    scene = make()
    for step in steps:
        say(scene, step)
        for _ in range(2):
            look(scene)
    say(scene, published(vm="vm"))
    scene.cluster.finalizers.clear()
    for _ in range(3):
        look(scene, 5)
    last = the_object(scene)

    assert last.finished is not None
    assert last.state == expected
    assert (MISSED in {one.type for one in last.conditions}) is (expected is Stage.MISSED)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        pytest.param(held, Kind.REBOOT, id="in the record"),
        pytest.param(blocked, Kind.REBOOT, id="in mid-drain"),
        pytest.param(free, Kind.FREEZE, id="ignored, so in no record"),
    ],
)
def test_the_objects_of_a_node_that_can_not_be_judged_stay_as_they_are(
    make: Callable[[], History], kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = make()
    say(scene, announced(kind))
    for _ in range(2):
        look(scene)
    before = the_object(scene)

    def broken(*_: object, **__: object) -> None:
        raise OverflowError("date value out of range")

    with monkeypatch.context() as patch:
        patch.setattr("reconciler.passes.decide.known.judge", broken)
        # A node that rests is not judged again before it changes.
        scene.cluster.label(before.node, "changed", "true")
        plan = look(scene)
        assert {hold.code for hold in plan.holds} == {INTERNAL.code}
        assert the_object(scene) == before
    look(scene)

    assert the_object(scene) == before


def test_a_miss_is_shown_as_soon_as_it_is_known() -> None:
    scene = held()
    say(scene, begun())
    look(scene)

    assert the_object(scene).finished is None
    assert [one.status for one in the_object(scene).conditions if one.type == MISSED] == ["True"]


@pytest.mark.parametrize(
    ("kind", "state", "ahead", "expected"),
    [
        pytest.param(Kind.PREEMPT, Stage.DRAINING, None, Stage.MISSED, id="the VM went in mid-drain"),
        pytest.param(Kind.REDEPLOY, Stage.WAITING, -1, Stage.MISSED, id="its date has passed"),
        pytest.param(Kind.REDEPLOY, Stage.DRAINED, -1, Stage.DONE, id="it was empty"),
        pytest.param(Kind.REDEPLOY, Stage.WAITING, 60, Stage.GONE, id="something else removed it"),
    ],
)
def test_a_node_that_is_gone_before_it_was_drained_is_missed(
    kind: Kind, state: Stage, ahead: float | None, expected: Stage
) -> None:
    date = NOW + minutes(ahead) if ahead is not None else None
    one = Maintenance("a-1", "a", "uid-a", known(kind, not_before=date), state)
    (write,) = changes([one], Fleet((), {}, builders.settings(), NOW)).writes

    wanted = getattr(write, "wanted", None)
    assert isinstance(wanted, Maintenance)
    assert wanted.state == expected


def test_objects_that_are_no_longer_published_go_and_are_then_not_read_any_more() -> None:
    scene = history(f"budget: {{maxUnavailable: 100%}}\n{SHOWN}\nhistory: 10m")
    say(scene, announced())
    look(scene)
    assert IN_LEDGER.of(scene.cluster.ledger) == ("nodemaintenances",)
    over = replace(the_object(scene), name="a-over", finished=scene.now)
    scene.cluster.others[KIND] = {**maintenances(scene.cluster), over.name: over}

    scene.settings = builders.settings("budget: {maxUnavailable: 100%}\nhistory: 10m")
    look(scene, 5)
    assert the_object(scene) == over
    look(scene, 5)
    look(scene)
    assert maintenances(scene.cluster) == {}
    look(scene)
    assert IN_LEDGER.of(scene.cluster.ledger) == ()
    assert _reads(scene) == 0


def _reads(scene: History) -> int:
    """Have one more pass; how often it reads NodeMaintenances."""
    seen: list[str] = []
    scene.api.before_read = lambda call: seen.append(call.what)
    look(scene)
    return seen.count("maintenances")


def test_without_the_permission_objects_that_are_no_longer_published_stay_and_the_plan_says_so() -> None:
    scene = history(FREE)
    say(scene, announced())
    look(scene)
    scene.settings = builders.settings("budget: {maxUnavailable: 100%}")

    def refuse(call: Call) -> None:
        if call.what == "maintenances":
            raise Forbidden("forbidden", status=403, needs="list nodemaintenances")

    scene.api.before_read = refuse
    plan, _ = scene.look()

    assert [note for note in plan.notes if "are no longer published, and stay as they are" in note]
    assert the_object(scene).finished is None
    assert IN_LEDGER.of(scene.cluster.ledger) == ()
