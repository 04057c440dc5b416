"""What each answer to an eviction means, with the wording of API servers old and new."""

from __future__ import annotations

import pytest

from reconciler.drain.drainer import Limits
from reconciler.drain.drainer.messages import BudgetNews
from reconciler.drain.drainer.requests import (
    EvictionRefusal,
    RefusalMeaning,
    read_refusal,
    refusal_reason,
    throttles,
)
from reconciler.model.errors import ClusterError, TooManyRequests, error_for
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.selector import EVERYTHING, LabelSelector
from tests.drain.drainer.driving import Drive, Scene

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
    scene = Scene()
    scene.add_node("a", cordoned=True)
    scene.deployment("web", "a", Limits().budgets_from)
    scene.add_budget("web", max_unavailable=0)
    drive = Drive(scene)
    drive.start("a")
    selector = LabelSelector.of({"app": "web"})
    drive.at(2, lambda: drive.hear(BudgetNews(PodDisruptionBudget("shop", "gone", selector, allowed=1), 0)))
    drive.run(12)

    assert 1 <= len(scene.requests) <= 6 * Limits().budgets_from
