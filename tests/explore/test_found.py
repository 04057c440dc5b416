"""Histories that `nox -s explore` found, shrunk: each broke the law that its comment names."""

from __future__ import annotations

from tests.explore.history import Scene, Step
from tests.explore.holding import holds

ACTING = ("mode: Enforce", "budget: {maxUnavailable: 1}")


def test_a_request_of_the_kind_of_a_plan_weeks_ahead_comes_and_goes() -> None:
    # Here the check was wrong, not the program: a plan weeks ahead is no current event.
    holds(
        Scene(1, settings=(*ACTING, "sources: {arm: {enabled: true, every: 30m}}")),
        (
            Step("arm plan", value="in 20160", then=15),
            Step("request", value="Redeploy"),
        ),
    )


def test_a_node_that_is_released_with_reset_is_drained_again() -> None:
    # Here the check was wrong, too: `--reset` undoes our cordon where the record can be read.
    holds(
        Scene(1, settings=ACTING),
        (
            Step("request", value="Reboot"),
            Step("reset"),
        ),
    )


def test_an_unready_pod_under_a_budget_whose_news_are_lost() -> None:
    # Law 17: evict shop/guarded-... again and again, without a pause.
    holds(
        Scene(1, pods=("budget",), settings=ACTING),
        (
            Step("watches", value="lost"),
            Step("wide event", value="Reboot in 15 by both", then=15),
        ),
    )


def test_a_node_that_a_person_drains_and_uncordons_without_release() -> None:
    # Law calm: n0 still has its record, with the person's claim.
    holds(Scene(1, settings=ACTING), (Step("drain by hand", value="anna"), Step("uncordon")))
