"""What each answer to an eviction means, also that of a webhook whose controller moves the pod itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from reconciler.drain.drainer import DrainCore, Limits
from reconciler.drain.drainer.messages import (
    BudgetNews,
    Event,
    Evict,
    NodeSeen,
    PodNews,
    Start,
    Tick,
    WatchPods,
    WriteDone,
)
from reconciler.drain.drainer.parts import Holding
from reconciler.drain.drainer.requests import (
    EvictionRefusal,
    RefusalMeaning,
    read_refusal,
    refusal_reason,
    throttles,
)
from reconciler.model.drains import MOST_REFUSERS, DrainOrder, Escalation, Phase, Refused, Spell
from reconciler.model.errors import (
    ClusterError,
    NoThread,
    ReconcilerError,
    Rejected,
    TooLate,
    TooManyRequests,
    error_for,
)
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import Listed
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.model.values import replace
from tests.drain.drainer.driving import START, Drive, Scene
from tests.support import builders

POD = Pod("shop", "web", "u", "n")
WEB = PodDisruptionBudget("shop", "web", EVERYTHING, desired=3, healthy=3)
DB = PodDisruptionBudget("shop", "db", EVERYTHING, desired=2, healthy=1)
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


def _refused(text: str, *causes: str, wait: float | None = None) -> TooManyRequests:
    return TooManyRequests(text, status=429, causes=causes, retry_after=wait)


@pytest.mark.parametrize(
    ("error", "budgets", "means"),
    [
        pytest.param(
            _refused(VIOLATES, "The disruption budget web needs 3 healthy pods and has 3 currently"),
            (),
            EvictionRefusal(
                RefusalMeaning.BUDGET, "waits for PDB shop/web: needs 3 healthy, has 3", "shop/web"
            ),
            id="the server names the budget and its numbers",
        ),
        pytest.param(
            _refused(VIOLATES, wait=10.0),
            (WEB,),
            EvictionRefusal(
                RefusalMeaning.BUDGET, "waits for PDB shop/web: needs 3 healthy, has 3", "shop/web", 10.0
            ),
            id="the server names none, and one budget selects the pod",
        ),
        pytest.param(
            _refused(VIOLATES, "db"),
            (WEB, DB),
            EvictionRefusal(
                RefusalMeaning.BUDGET, "waits for PDB shop/db: needs 2 healthy, has 1", "shop/db"
            ),
            id="the server names one of two budgets",
        ),
        pytest.param(
            _refused(VIOLATES),
            (WEB, DB),
            EvictionRefusal(RefusalMeaning.BUDGET, f"refused by a PDB: {VIOLATES}"),
            id="the server names none of two budgets",
        ),
        pytest.param(
            _refused(VIOLATES, wait=4.0),
            (),
            EvictionRefusal(RefusalMeaning.BUDGET, f"refused by a PDB: {VIOLATES}", wait=4.0),
            id="the budgets are not known",
        ),
        pytest.param(
            _refused("too many requests", wait=1.0),
            (WEB,),
            EvictionRefusal(RefusalMeaning.LATER, "the API server is busy: too many requests", wait=1.0),
            id="no budget is meant",
        ),
    ],
)
def test_a_429_is_read_with_and_without_the_name_of_a_budget(
    error: TooManyRequests, budgets: tuple[PodDisruptionBudget, ...], means: EvictionRefusal
) -> None:
    assert read_refusal(error, POD, budgets) == means


@pytest.mark.parametrize("error", [TooLate("the node was last seen cordoned too long ago"), NoThread("no")])
def test_an_eviction_that_was_not_sent_is_sent_soon(error: ReconcilerError) -> None:
    """Nobody refused it: after half a minute, a spot VM would be gone."""
    assert read_refusal(error, POD, ()) == EvictionRefusal(RefusalMeaning.LATER, str(error))


HOOK = 'admission webhook "guard.example.com" denied the request: '


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422, 429, 500, 503])
@pytest.mark.parametrize(
    ("text", "because", "by"),
    [
        pytest.param(
            f"{HOOK}it is moved",
            "denied by webhook guard.example.com: it is moved",
            "guard.example.com",
            id="a",
        ),
        pytest.param(
            f"{HOOK}disruption budget web needs 9 healthy pods and has 9",
            "denied by webhook guard.example.com: disruption budget web needs 9 healthy pods and has 9",
            "guard.example.com",
            id="one that speaks of a budget",
        ),
        pytest.param(
            "it is forbidden: ValidatingAdmissionPolicy 'calm' with binding 'all' denied request: no",
            "denied by ValidatingAdmissionPolicy calm: no",
            "calm",
            id="a policy",
        ),
    ],
)
def test_a_denial_is_known_by_its_text_whatever_its_status(
    status: int, text: str, because: str, by: str
) -> None:
    error: ClusterError = error_for(status)(text, status=status, retry_after=7.0)
    found = read_refusal(error, POD, (WEB,))

    assert (found.meaning, found.because, found.wait) == (RefusalMeaning.DENIED, because, 7.0)
    assert found.denied_by.endswith(by)
    assert not throttles(error)


def test_a_webhook_that_cannot_be_called_denies_nothing() -> None:
    text = 'Internal error occurred: failed calling webhook "guard.example.com": connection refused'
    found = read_refusal(error_for(500)(text, status=500), POD, ())

    assert (found.meaning, found.denied_by) == (RefusalMeaning.LATER, "")
    assert found.because == "webhook guard.example.com can't be called: connection refused"


def test_a_long_denial_is_cut() -> None:
    found = read_refusal(error_for(403)(f"{HOOK}{'x' * 9000}", status=403), POD, ())

    assert len(found.because) < 400


def test_only_the_server_itself_asks_for_a_pause_of_all_requests() -> None:
    assert throttles(_refused("too many requests", wait=1.0))
    assert not throttles(_refused("too many requests"))
    assert not throttles(_refused(VIOLATES, "web", wait=1.0))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (_refused(VIOLATES), "budget"),
        (_refused("too many requests", wait=1.0), "unreachable"),
        (error_for(503)("no answer", status=503), "unreachable"),
        (error_for(403)("no right to evict", status=403), "other"),
        (error_for(403)("it is being terminated", status=403, reason="NamespaceTerminating"), "namespace"),
        (error_for(400)('admission webhook "w.x.io" denied the request: busy', status=400), "webhook"),
        (error_for(404)("gone", status=404), ""),
    ],
)
def test_a_refusal_has_a_short_reason_for_metrics_and_a_pod_that_is_gone_none(
    error: ClusterError, reason: str
) -> None:
    assert refusal_reason(error, POD) == reason


def test_where_the_watch_shows_other_budgets_than_the_server_has_each_refusal_has_a_pause() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", Limits().budgets_from)
    scene.add_budget("web", max_unavailable=0)
    drive = Drive(scene).start("a")
    selector = LabelSelector.of({"app": "web"})
    drive.at(2, lambda: drive.hear(BudgetNews(PodDisruptionBudget("shop", "gone", selector, allowed=1), 0)))
    drive.run(12)

    assert 1 <= len(scene.requests) <= 6 * Limits().budgets_from


LIMITS = Limits()
STRIMZI = (
    'admission webhook "strimzi-drain-cleaner.strimzi.io" denied the request: '
    "The pod will be rolled by the Strimzi Cluster Operator"
)
KUBEVIRT = (
    'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: '
    'Eviction triggered evacuation of VMI "default/vm"'
)
DENIED = Rejected(STRIMZI, status=500)
MINUTE = timedelta(minutes=1)


class Hook:
    """A webhook that denies the evictions of pods whose name begins with `name`, until `until` seconds."""

    def __init__(self, scene: Scene, name: str, error: ClusterError = DENIED, until: float = 10**6) -> None:
        self.scene, self.name, self.error = scene, f"{name}-", error
        self.until = START + timedelta(seconds=until)
        scene.trouble = self.answer

    def answer(self, verb: str, pod: Pod | None) -> ReconcilerError | None:
        """Deny, or admit."""
        denies = verb == "evict" and pod is not None and pod.name.startswith(self.name)
        return self.error if denies and self.scene.now < self.until else None


def _times(scene: Scene, name: str) -> list[datetime]:
    return [one.at for one in scene.requests if one.pod.startswith(f"shop/{name}")]


@pytest.mark.parametrize(
    ("error", "by", "words"),
    [
        pytest.param(DENIED, "strimzi-drain-cleaner.strimzi.io", "will be rolled", id="Strimzi"),
        pytest.param(
            TooManyRequests(KUBEVIRT, status=429),
            "virt-launcher-eviction-interceptor.kubevirt.io",
            "triggered evacuation",
            id="KubeVirt",
        ),
    ],
)
def test_a_denial_names_its_webhook_and_the_pod_that_is_moved_ends_the_drain(
    error: ClusterError, by: str, words: str
) -> None:
    scene = Scene("a")
    (pod,) = scene.deployment("kafka", "a")
    Hook(scene, "kafka", error)
    drive = Drive(scene).start("a")
    drive.at(150, lambda: scene.cluster.terminate(pod.uid, None))
    (blocker,) = drive.run(100)["a"].blockers
    ended = drive.run()["a"]

    assert (blocker.pod, blocker.budget) == ("shop/kafka-0", "")
    assert f"denied by webhook {by}: " in blocker.because
    assert words in blocker.because
    assert blocker.because.endswith("it counts as blocked from 2026-03-02T12:10:00Z on")
    assert (ended.phase, ended.evicted) == (Phase.DRAINED, 0)
    assert ended.finished is not None
    assert ended.finished - START < timedelta(seconds=160)


def test_a_denied_eviction_is_tried_again_with_growing_pauses() -> None:
    scene = Scene("a")
    scene.deployment("kafka", "a")
    Hook(scene, "kafka", until=300)
    ended = Drive(scene).start("a").run()["a"]
    asked = _times(scene, "kafka")
    pauses = [after - before for before, after in pairwise(asked)]

    assert ended.phase is Phase.DRAINED
    assert LIMITS.denied.first <= pauses[0] < LIMITS.denied.first + timedelta(seconds=1)
    assert LIMITS.denied.last <= max(pauses) < LIMITS.denied.last + timedelta(seconds=1)
    assert pauses == sorted(pauses)


def test_a_webhook_cannot_put_off_the_next_try_for_long() -> None:
    scene = Scene("a")
    scene.deployment("kafka", "a")
    Hook(scene, "kafka", TooManyRequests(KUBEVIRT, status=429, retry_after=10.0**9), until=60)

    assert Drive(scene).start("a").run(100)["a"].phase is Phase.DRAINED
    pauses = [after - before for before, after in pairwise(_times(scene, "kafka"))]
    assert max(pauses) < LIMITS.denied.last + timedelta(seconds=1)


def test_a_retry_after_of_a_webhook_pauses_no_other_eviction() -> None:
    scene = Scene("a", "b")
    scene.deployment("kafka", "a")
    scene.deployment("web", "b", 60)
    Hook(scene, "kafka", TooManyRequests(KUBEVIRT, status=429, retry_after=200.0))
    drive = Drive(scene).start("a")
    drive.start("b")

    assert drive.run(60)["b"].phase is Phase.DRAINED


def test_a_denied_eviction_is_sent_while_its_budget_allows_none() -> None:
    scene = Scene("a")
    scene.deployment("kafka", "a", LIMITS.budgets_from, allowed=1)
    Hook(scene, "kafka")
    drive = Drive(scene).start("a")
    drive.at(10, lambda: scene.change_budget("shop/kafka", max_unavailable=0))
    drive.run(200)

    assert len([at for at in _times(scene, "kafka-0") if at > START + timedelta(seconds=10)]) >= 4


def test_a_denied_eviction_neither_waits_for_its_budget_nor_keeps_others_waiting() -> None:
    core, node = DrainCore(), builders.node(unschedulable=True)
    (watching,) = core.step(Start(DrainOrder(node.name, node.uid, START, 60 * MINUTE)), START)[:1]
    assert isinstance(watching, WatchPods)
    number = watching.watch
    pods = [replace(builders.pod(f"db-{index}"), labels={"app": "db"}, ready=True) for index in range(3)]
    budget = PodDisruptionBudget(
        "shop", "db", LabelSelector.of({"app": "db"}), allowed=1, desired=2, healthy=3
    )
    news: list[Event] = [PodNews(node.name, number, one) for one in pods]
    listed: list[Event] = [PodNews(node.name, number, Listed()), BudgetNews(budget, 0)]
    core.step_all([*news, *listed], START)
    (denied,) = core.step(NodeSeen(node.name, number, node), START)
    assert isinstance(denied, Evict)
    (second,) = core.step(WriteDone(denied, DENIED), START)
    assert isinstance(second, Evict)
    later = START + LIMITS.denied.first
    core.step(Tick(), later)
    (again,) = core.step(NodeSeen(node.name, number, node), later)
    core.step(WriteDone(second), later)
    (third,) = core.step(BudgetNews(budget, 0), later)

    asked = [one.pod.name for one in (denied, second, again, third) if isinstance(one, Evict)]
    assert asked == ["db-0", "db-1", "db-0", "db-2"]


def test_a_denied_eviction_counts_as_blocked_only_after_a_time() -> None:
    scene = Scene("a", "b")
    scene.deployment("kafka", "a")
    scene.deployment("web", "b")
    Hook(scene, "kafka")
    drive = Drive(scene).start("a", slots=1, may_be_denied=5 * MINUTE)
    drive.start("b", slots=1)
    early = drive.run(290)
    late = drive.run(400)

    assert (early["a"].slot.held, early["a"].slot.blocked_since) == (True, None)
    assert [one.leaving for one in early["a"].blockers] == [True]
    assert [one.leaving for one in late["a"].blockers] == [False]
    assert early["b"].slot.awaited
    assert late["a"].slot.blocked_since is not None
    assert abs(late["a"].slot.blocked_since - START - 5 * MINUTE) < timedelta(seconds=2)
    assert late["b"].phase is Phase.DRAINED


def test_a_pod_that_a_budget_refuses_in_the_end_waits_for_the_budget() -> None:
    scene = Scene("a")
    scene.deployment("kafka", "a", allowed=0)
    Hook(scene, "kafka", until=30)
    progress = Drive(scene).start("a", slots=1).run(300)["a"]

    (blocker,) = progress.blockers
    assert blocker.because == "waits for PDB shop/kafka: needs 1 healthy, has 1"
    assert progress.slot.blocked_since is not None
    assert len(_times(scene, "kafka")) < 40


def test_a_pod_that_a_webhook_keeps_is_deleted_in_time_before_the_deadline() -> None:
    scene = Scene("a")
    (pod,) = scene.deployment("kafka", "a")
    Hook(scene, "kafka", TooManyRequests(KUBEVIRT, status=429, retry_after=300.0))
    deadline = START + timedelta(seconds=100)

    assert (
        Drive(scene)
        .start("a", escalation=Escalation(delete_before_deadline=True, deadline=deadline))
        .run()["a"]
        .phase
        is Phase.DRAINED
    )
    deletion = scene.requests[-1]
    assert deletion.verb == "delete"
    assert abs(deletion.at - (deadline - pod.spec.grace_period)) < timedelta(seconds=1)


def test_a_server_that_asks_for_an_hour_is_tried_with_one_eviction_a_minute_until_it_takes_one() -> None:
    scene = Scene("a", "b")
    for node in ("a", "b"):
        scene.deployment(f"web-{node}", node, count=5)
    ends = START + timedelta(minutes=3, seconds=30)
    drive = Drive(scene)

    def trouble(verb: str, _: Pod | None) -> ReconcilerError | None:
        if verb != "evict" or drive.now >= ends:
            return None
        return TooManyRequests("busy", status=429, retry_after=3600)

    scene.trouble = trouble
    drive.start("a").start("b")
    done = drive.run()
    asked = sorted((one.at - START).total_seconds() for one in scene.requests if one.verb == "evict")
    # All that were in flight at once; then one probe each minute; then all others.
    first, probes = [at for at in asked if at < 30], [at for at in asked if 30 <= at < 210]

    assert len(first) <= 10
    assert [round(at / 60) for at in probes] == [1, 2, 3]
    assert len(asked) == len(first) + len(probes) + 10
    assert max(asked) < 300
    assert {progress.phase for progress in done.values()} == {Phase.DRAINED}


@pytest.mark.parametrize("pods", [1, LIMITS.budgets_from])
def test_an_eviction_says_how_often_what_has_refused_it_before(pods: int) -> None:
    scene = Scene("a")
    scene.deployment("web", "a", pods, allowed=0)
    drive = Drive(scene).start("a")
    drive.at(60, lambda: scene.change_budget("shop/web", max_unavailable=pods))
    assert drive.run(300)["a"].phase is Phase.DRAINED
    sent = [command for _, command in drive.commands if isinstance(command, Evict)]
    last = {command.pod.name: command.refused for command in sent}

    assert len(last) == pods
    assert {refused.by for one in last.values() for refused in one} == {"PDB shop/web"}
    assert all(len(one) == 1 for one in last.values())


def test_a_drain_says_how_long_each_budget_has_held_it() -> None:
    scene = Scene("a")
    scene.deployment("web", "a", 2, allowed=0)
    scene.deployment("free", "a", 2, allowed=2)
    drive = Drive(scene).start("a")
    drive.at(60, lambda: scene.change_budget("shop/web", max_unavailable=2))
    done = drive.run(300)["a"]
    (spell,) = done.spells

    assert done.phase is Phase.DRAINED
    assert (spell.budget, spell.since) == ("shop/web", None)
    # It ends when the evictions are accepted.
    assert 58 <= spell.before.total_seconds() <= 62


def test_a_clock_that_goes_back_makes_no_spell_longer() -> None:
    holding = Holding()
    holding.note({"shop/web"}, START)
    holding.note({"shop/web"}, START - timedelta(hours=1))
    holding.note(set(), START - timedelta(minutes=50))

    assert holding.spells == (Spell("shop/web", timedelta(minutes=10)),)


def test_a_denial_counts_for_its_webhook_and_refusers_of_one_pod_are_few() -> None:
    counted: tuple[Refused, ...] = ()
    for number in range(2 * MOST_REFUSERS):
        counted = Refused.counted(counted, f"webhook {number}")

    assert [refused.times for refused in counted] == [1, 1, 1, 1, 1 + MOST_REFUSERS]
    assert Refused.counted(counted, "webhook 0")[0] == Refused("webhook 0", 2)


@pytest.mark.parametrize(
    ("refusal", "by"),
    [
        (EvictionRefusal(RefusalMeaning.BUDGET, "", "shop/web"), "PDB shop/web"),
        (EvictionRefusal(RefusalMeaning.BUDGET, ""), "a PDB"),
        (EvictionRefusal(RefusalMeaning.DENIED, "", denied_by="webhook x"), "webhook x"),
        (EvictionRefusal(RefusalMeaning.LATER, ""), "the API server"),
    ],
)
def test_a_refusal_says_what_refused(refusal: EvictionRefusal, by: str) -> None:
    assert refusal.by == by
