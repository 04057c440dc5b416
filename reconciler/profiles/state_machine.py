"""The state machine: all steps of one node in one profile that are possible in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from reconciler.model.holds import HoldCode
from reconciler.model.plan import CheckAnswer, Hold, Transition, Verdict
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.profiles.case import not_dismissed
from reconciler.profiles.expression import blockers, evaluate, supporters
from reconciler.profiles.profile import Profile, Step
from reconciler.profiles.situation import Check, Effects, Situation, Trigger

# The next state of a case. A blocked transition to it holds the node.
_FORWARD = {
    State.OPERATIONAL: State.REQUIRED,
    State.REQUIRED: State.IN_MAINTENANCE,
    State.IN_MAINTENANCE: State.OPERATIONAL,
}


class Walk(Struct, frozen=True):
    """The result for one node and profile: its state, effects, transitions, answers of checks, and holds.

    `alone` are the checks of which each is all that keeps a transition from being taken.
    """

    state: State
    effects: Effects
    transitions: tuple[Transition, ...] = ()
    answers: tuple[CheckAnswer, ...] = ()
    holds: tuple[Hold, ...] = ()
    alone: frozenset[str] = frozenset()


def walk(
    profile: Profile,
    situation: Situation,
    checks: Mapping[str, Check],
    triggers: Mapping[str, Trigger],
) -> Walk:
    """Follow every open transition, leave each state at most once, and return what holds the node then.

    Notice is short, so a node may go from operational to in-maintenance within one pass. After the end of a
    case this pass starts no other: an event that is still reported opens the next case in the next pass.
    """
    effects = Effects(situation.record)
    taken: list[Transition] = []
    answers: dict[str, CheckAnswer] = {}
    left: set[State] = set()
    given: dict[str, CheckAnswer] = {}
    while situation.state not in left:
        given = {}
        step = _first_open(profile, situation, _asker(situation, checks, given))
        answers |= given
        if step is None:
            break
        left.add(situation.state)
        because = _because(step, _asker(situation, checks, given))
        if step.next is not situation.state:
            moved = effects.record.moved(step.next, situation.now.replace(microsecond=0))
            effects = replace(effects, record=moved)
        chain = (*step.triggers, *profile.rules(step.next).enter)
        for name in chain:
            effects = triggers[name](situation, effects)
        drains = effects.record.drain is not None and effects.record.drain != situation.record.drain
        taken.append(Transition(profile.name, situation.state, step.next, because, drains))
        situation, given = _after(situation, step, effects), {}
        if step.next is State.OPERATIONAL:
            break
    # The answers to the last question still hold where no step followed.
    answer = _asker(situation, checks, given)
    steps = profile.rules(situation.state).transitions
    blocked = [(step, blockers(step.check, answer)) for step in steps]
    alone = frozenset(blocking[0].name for _, blocking in blocked if len(blocking) == 1)
    holds = _holds(situation, blocked)
    return Walk(situation.state, effects, tuple(taken), tuple(answers.values()), holds, alone)


def _because(step: Step, answer: Callable[[str], CheckAnswer]) -> str:
    """Return why a step is taken, in the words of its checks."""
    found = supporters(step.check, answer)
    telling = [one for one in found if one.reason] or found
    reasons = dict.fromkeys(one.words for one in telling if one.words)
    return "; ".join(reasons) or "the profile requires nothing for this step"


def _after(situation: Situation, step: Step, effects: Effects) -> Situation:
    node = situation.node
    if effects.unschedulable is not None:
        node = replace(node, unschedulable=effects.unschedulable)
    judged = not_dismissed(effects.record, situation.judged)
    return replace(situation, node=node, state=step.next, record=effects.record, judged=judged)


def _asker(
    situation: Situation, checks: Mapping[str, Check], given: dict[str, CheckAnswer]
) -> Callable[[str], CheckAnswer]:
    def answer(name: str) -> CheckAnswer:
        if name not in given:
            given[name] = checks[name](situation)
        return given[name]

    return answer


def _first_open(profile: Profile, situation: Situation, answer: Callable[[str], CheckAnswer]) -> Step | None:
    # Every transition is checked, not only the first that passes: the report shows all answers.
    verdicts = [(step, evaluate(step.check, answer)) for step in profile.rules(situation.state).transitions]
    return next(
        (
            step
            for step, verdict in verdicts
            if verdict is Verdict.PASSED and not _taken_elsewhere(situation, step)
        ),
        None,
    )


def _taken_elsewhere(situation: Situation, step: Step) -> bool:
    """Whether the step would put the node into maintenance while it is in maintenance for another profile."""
    begins = step.next is State.IN_MAINTENANCE and situation.state is not State.IN_MAINTENANCE
    return begins and bool(situation.record.elsewhere)


def _holds(situation: Situation, blocked: Sequence[tuple[Step, Sequence[CheckAnswer]]]) -> tuple[Hold, ...]:
    found: dict[str, Hold] = {}
    for step, blocking in blocked:
        # A transition that stays in the state holds the node too; one that goes back does not.
        if step.next not in (_FORWARD[situation.state], situation.state):
            continue
        if not blocking and _taken_elsewhere(situation, step):
            reason = (
                f"it is in maintenance for profile {situation.record.elsewhere}; only one profile at a time"
            )
            found[HoldCode.ONE_PROFILE] = Hold(situation.node.name, HoldCode.ONE_PROFILE, reason)
        # A check that only states a fact closes a transition that this case does not need.
        if any(not one.holds for one in blocking):
            continue
        for one in blocking:
            found[one.name] = Hold(situation.node.name, one.name, one.words, one.until, one.waits_for)
    return tuple(found.values())
