"""Dry-run evictions: what counts as the answer of a webhook, and the limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count

import pytest

from reconciler.features.readiness.dry_evictions import SILENT, ask_webhooks
from reconciler.features.readiness.findings import WebhookAnswers
from reconciler.model.errors import Unauthorized
from tests.support import builders
from tests.support.stub import Answer, Asked, StubMaker, json_answer, status

PODS = [builders.pod(f"web-{number}") for number in range(6)]
RBAC = 'pods "web-0" is forbidden: User "me" cannot create resource "pods/eviction" in API group ""'
DENIED = 'admission webhook "guard.example.com" denied the request: not\nnow \x1b[2J'
POLICY = "pods \"w\" is forbidden: ValidatingAdmissionPolicy 'calm' with binding 'all' denied request: no"
SILENTLY = 'admission webhook "guard" denied the request without explanation'
FAILED = 'Internal error occurred: failed calling webhook "guard.example.com": connection refused'

Answering = Callable[[Asked], Answer]


def refused(answer: Answer) -> Answering:
    return lambda _: answer


def test_the_request_is_a_dry_run_in_its_query_and_in_its_options(stub: StubMaker) -> None:
    server, connection = stub(refused(json_answer({}, 201)))

    assert ask_webhooks(connection, PODS[:2]) == WebhookAnswers(asked=2)
    for asked in server.asked:
        options = json.loads(asked.body)["deleteOptions"]
        assert (asked.method, asked.query["dryRun"], options["dryRun"]) == ("POST", "All", ["All"])
        assert options["preconditions"]["uid"].startswith("uid-")


GUARD = "webhook guard.example.com"


@pytest.mark.parametrize(
    ("answer", "webhook", "message", "reached"),
    [
        (status(403, "Forbidden", DENIED), GUARD, "not now \x1b[2J", True),
        (status(429, "TooManyRequests", DENIED), GUARD, "not now \x1b[2J", True),
        (status(400, "", SILENTLY), "webhook guard", "no reason is given", True),
        (status(422, "Invalid", POLICY), "ValidatingAdmissionPolicy calm", "no", True),
        (status(500, "InternalError", FAILED), GUARD, "connection refused", False),
    ],
    ids=["denied", "429", "without a reason", "a policy", "can't be called"],
)
def test_a_refusal_names_its_webhook(
    stub: StubMaker, answer: Answer, webhook: str, message: str, reached: bool
) -> None:
    _, connection = stub(refused(answer))
    (refusal,) = ask_webhooks(connection, PODS[:1]).refusals

    assert (refusal.webhook, refusal.message, refusal.reached) == (webhook, message, reached)


@pytest.mark.parametrize(
    "answer",
    [
        status(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget."),
        status(500, "InternalError", "This pod has more than one PodDisruptionBudget"),
        status(404, "NotFound", "gone"),
        status(409, "Conflict", "another UID"),
    ],
    ids=["a budget", "two budgets", "gone", "another pod"],
)
def test_another_answer_means_that_no_webhook_refused(stub: StubMaker, answer: Answer) -> None:
    _, connection = stub(refused(answer))

    assert ask_webhooks(connection, PODS[:1]) == WebhookAnswers(asked=1)


def test_a_long_message_is_cut(stub: StubMaker) -> None:
    _, connection = stub(refused(status(403, "Forbidden", f"{DENIED}{'x' * 9000}")))
    (refusal,) = ask_webhooks(connection, PODS[:1]).refusals

    assert len(refusal.message) == 300


def test_without_the_permission_a_namespace_is_asked_once(stub: StubMaker) -> None:
    server, connection = stub(refused(status(403, "Forbidden", RBAC)))
    found = ask_webhooks(connection, [*PODS, builders.pod("other", namespace="other")])

    assert len(server.asked) == found.asked == 2
    assert (found.needs, found.left) == ("create pods/eviction", 0)


def test_the_permission_in_one_namespace_is_named_with_it(stub: StubMaker) -> None:
    def answer(asked: Asked) -> Answer:
        return status(403, "Forbidden", RBAC) if "/shop/" in asked.path else json_answer({}, 201)

    _, connection = stub(answer)
    found = ask_webhooks(connection, [*PODS, builders.pod("other", namespace="other")])

    assert (found.asked, found.needs) == (2, "create pods/eviction in shop")


def test_after_several_evictions_without_an_answer_no_more_are_sent(stub: StubMaker) -> None:
    server, connection = stub(refused(status(503, "ServiceUnavailable", "later")))
    found = ask_webhooks(connection, PODS)

    assert (len(server.asked), found.silent, found.left) == (SILENT, SILENT, len(PODS) - SILENT)


def test_the_number_and_the_time_are_limited(stub: StubMaker) -> None:
    _, connection = stub(refused(json_answer({}, 201)))
    ticks = count()

    assert ask_webhooks(connection, PODS, most=4) == WebhookAnswers(asked=4, left=2)
    assert ask_webhooks(connection, PODS, seconds=3, clock=lambda: float(next(ticks))).left == 4


def test_credentials_that_are_refused_are_an_error(stub: StubMaker) -> None:
    _, connection = stub(refused(status(401, "Unauthorized", "who are you")))

    with pytest.raises(Unauthorized):
        ask_webhooks(connection, PODS)
