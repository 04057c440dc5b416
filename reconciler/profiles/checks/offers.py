"""Checks of offers: whether the platform is to be asked now, and whether it has answered."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.plan import Verdict
from reconciler.model.values import replace
from reconciler.profiles.situation import Situation
from reconciler.profiles.vocabulary import CheckResult, check, failed, passed


@check("offerDue", who="the owner of what the reason names: `reconciler explain {node}`")
def offer_due(situation: Situation) -> CheckResult:
    """Pass when an offer is due, so that the platform is asked now."""
    answers = [(offer, answer) for offer, answer in situation.due if not offer.prepares]
    due = [answer for _, answer in answers if answer.verdict is Verdict.PASSED]
    if due:
        return replace(_joined(due), holds=False)
    waits = [replace(answer, who=offer.who, by_itself=offer.by_itself) for offer, answer in answers]
    holding = [answer for answer in waits if answer.holds]
    if holding:
        return _joined(holding)
    return replace(_joined([answer for _, answer in answers]), holds=False)


@check("preparationDue")
def preparation_due(situation: Situation) -> CheckResult:
    """Pass when something has to be asked for that must be there before the drain, or before its request."""
    answers = [answer for offer, answer in situation.due if offer.prepares]
    due = [answer for answer in answers if answer.verdict is Verdict.PASSED]
    return replace(_joined(due or answers), holds=False)


@check(
    "offerAnswered",
    ordinarily="no answer of the platform is waited for",
    who="the platform that was asked",
    by_itself=True,
)
def offer_answered(situation: Situation) -> CheckResult:
    """Pass unless the node waits for what the platform was asked for."""
    answers = [(offer, offer.answered(situation)) for offer in situation.offers]
    waits = [
        replace(answer, who=offer.answers, by_itself=True)
        for offer, answer in answers
        if answer.verdict is not Verdict.PASSED
    ]
    if waits:
        return _joined(waits)
    done = [answer for _, answer in answers if answer.reason]
    return _joined(done) if done else passed()


@check("offerRefused")
def offer_refused(situation: Situation) -> CheckResult:
    """Pass when the platform has not done what it was asked for, and is not asked again."""
    answers = [offer.refused(situation) for offer in situation.asked if offer.refused is not None]
    refused = [answer for answer in answers if answer.verdict is Verdict.PASSED]
    return replace(_joined(refused or answers), holds=False)


def _joined(answers: Sequence[CheckResult]) -> CheckResult:
    """Return several answers of one kind as one."""
    if not answers:
        return failed("nothing is asked of the platform")
    verdicts = {answer.verdict for answer in answers}
    return CheckResult(
        Verdict.UNKNOWN if Verdict.UNKNOWN in verdicts else answers[0].verdict,
        "; ".join(dict.fromkeys(answer.reason for answer in answers if answer.reason)),
        min((answer.until for answer in answers if answer.until is not None), default=None),
        who="; or ".join(dict.fromkeys(answer.who for answer in answers if answer.who)),
        by_itself=all(answer.by_itself for answer in answers),
    )
