"""The state machine of all profiles: their form, which transitions are open, and which steps follow.

A check expression is passed, failed or unknown. Every check is evaluated, so that every reason is known, and
an unknown answer never makes a `!` pass.

The profile of platform events takes all steps that are possible in one pass (`walk`). One of the
settings takes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from msgspec import Struct, field

from reconciler.model.expression import All, AnyOf, Expression, Name, Not, parse
from reconciler.model.holds import ONE_PROFILE
from reconciler.model.plan import CheckAnswer, Hold, Transition, Verdict
from reconciler.model.record import State
from reconciler.model.steps import HeldStep
from reconciler.model.values import replace
from reconciler.profiles.case import not_dismissed
from reconciler.profiles.situation import Effects, Situation, Work
from reconciler.profiles.vocabulary import Check, CheckType, Trigger
from reconciler.settings.profiles import ProfileSettings
from reconciler.settings.yaml import read_yaml


class Step(Struct, frozen=True):
    """One transition: when `check` passes, the triggers run in order and `next` is the new state.

    `text` is the expression as the profile has it.
    """

    check: Expression
    text: str
    triggers: tuple[Trigger, ...]
    next: State


class StateRules(Struct, frozen=True):
    """The rules of one state: the triggers that run when it is entered (`enter`), and its transitions.

    `notify` are the names of its notifications.
    """

    enter: tuple[Trigger, ...] = ()
    transitions: tuple[Step, ...] = ()
    notify: tuple[str, ...] = ()


_NO_RULES = StateRules()
_NO_CHECKS: Mapping[str, Check] = {}


class Profile(Struct, frozen=True):
    """One profile."""

    name: str
    states: Mapping[State, StateRules] = field(default_factory=dict)

    def rules(self, state: State) -> StateRules:
        """Return the rules of one state, empty if the profile has none for it."""
        return self.states.get(state, _NO_RULES)

    def has(self, state: State) -> bool:
        """Whether the profile has this state: it has rules for it, or a step leads there."""
        if state is State.OPERATIONAL or self.rules(state) != _NO_RULES:
            return True
        return any(step.next is state for rules in self.states.values() for step in rules.transitions)


def profile_of(settings: ProfileSettings, triggers: Mapping[str, Trigger]) -> Profile:
    """Return a profile of settings with its triggers, which all exist."""

    def chain(names: tuple[str, ...]) -> tuple[Trigger, ...]:
        return tuple(triggers[name] for name in names)

    states: dict[State, StateRules] = {}
    for state in State:
        rules = settings.rules(state)
        steps = tuple(
            Step(parse(step.check), step.check, chain(step.trigger), step.next) for step in rules.transitions
        )
        states[state] = StateRules(chain(rules.enter), steps, tuple(dict.fromkeys(rules.notify)))
    return Profile(settings.name, states)


_PLACES: Mapping[str, Callable[[CheckType], bool]] = {
    "permitted": lambda check: check.wait is not None,
    "postDrain": lambda check: check.step is HeldStep.POST_DRAIN,
    "preUncordon": lambda check: check.step is HeldStep.PRE_UNCORDON,
}
"""The words of a built-in profile that stand for checks of features, with which of them."""


def builtin(name: str, triggers: Mapping[str, Trigger], checks: Mapping[str, Check] = _NO_CHECKS) -> Profile:
    """Return a profile of the package, which has the form that a user would write.

    Of these `checks`, those of starts are asked wherever it asks for a window, because a drain may start
    there. Those with a wait stand where it says `permitted`, those that hold a step where it names the step.
    """
    of_starts = [name for name, check in checks.items() if check.type.starts]
    places = {
        place: "".join(f" && {name}" for name, check in checks.items() if stands(check.type))
        for place, stands in _PLACES.items()
    }
    document = read_yaml(files("reconciler.profiles").joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    assert isinstance(document.value, dict)
    for rules in document.value.values():
        for step in rules["transitions"]:
            for place, named in places.items():
                step["check"] = step["check"].replace(f" && {place}", named)
            if "windowOpen" in step["check"]:
                step["check"] = " && ".join([step["check"], *of_starts])
    settings = ProfileSettings.model_validate({"name": name, **document.value}, by_alias=True, by_name=False)
    return profile_of(settings, triggers)


def evaluate(tree: Expression, answer: Callable[[str], CheckAnswer]) -> Verdict:
    """Return the verdict of the expression, in three-valued logic."""
    # Each pass asks this many times of each node. A match takes twice as long, and isinstance is a call for
    # each part.
    if isinstance(tree, Name):
        return answer(tree.name).verdict
    if isinstance(tree, Not):
        return _OPPOSITE[evaluate(tree.part, answer)]
    wins, loses = _DECIDES[type(tree)]
    found = [
        answer(part.name).verdict if type(part) is Name else evaluate(part, answer) for part in tree.parts
    ]
    if wins in found:
        return wins
    return Verdict.UNKNOWN if Verdict.UNKNOWN in found else loses


_OPPOSITE: Mapping[Verdict, Verdict] = {
    Verdict.PASSED: Verdict.FAILED,
    Verdict.FAILED: Verdict.PASSED,
    Verdict.UNKNOWN: Verdict.UNKNOWN,
}
_DECIDES: Mapping[type[All | AnyOf], tuple[Verdict, Verdict]] = {
    All: (Verdict.FAILED, Verdict.PASSED),
    AnyOf: (Verdict.PASSED, Verdict.FAILED),
}
"""The verdict that one part decides alone, and that of an expression in which no part does."""


def blockers(tree: Expression, answer: Callable[[str], CheckAnswer]) -> tuple[CheckAnswer, ...]:
    """Return the answers that keep the expression from passing, each once.

    A check behind a `!` blocks by passing.
    """
    found = _blockers(tree, answer, wanted=Verdict.PASSED)
    return tuple({blocker.name: blocker for blocker in found}.values())


def supporters(tree: Expression, answer: Callable[[str], CheckAnswer]) -> tuple[CheckAnswer, ...]:
    """Return the answers that let a passing expression pass, each once.

    A check behind a `!` does so by failing. Of the parts of an `||`, only those that pass count.
    """
    found = _supporters(tree, answer, wanted=Verdict.PASSED)
    return tuple({one.name: one for one in found}.values())


def _supporters(
    tree: Expression, answer: Callable[[str], CheckAnswer], *, wanted: Verdict
) -> list[CheckAnswer]:
    match tree:
        case Name(name):
            given = answer(name)
            return [given] if given.verdict is wanted else []
        case Not(part):
            return _supporters(part, answer, wanted=_OPPOSITE[wanted])
        case All(parts) | AnyOf(parts):
            agreeing = [part for part in parts if evaluate(part, answer) is wanted]
            return [supporter for part in agreeing for supporter in _supporters(part, answer, wanted=wanted)]


def _blockers(
    tree: Expression, answer: Callable[[str], CheckAnswer], *, wanted: Verdict
) -> list[CheckAnswer]:
    if isinstance(tree, Name):
        given = answer(tree.name)
        return [] if given.verdict is wanted else [given]
    if isinstance(tree, Not):
        return _blockers(tree.part, answer, wanted=_OPPOSITE[wanted])
    each = [
        ([given] if (given := answer(part.name)).verdict is not wanted else [])
        if type(part) is Name
        else _blockers(part, answer, wanted=wanted)
        for part in tree.parts
    ]
    enough = isinstance(tree, AnyOf) == (wanted is Verdict.PASSED)
    if enough and not all(each):
        return []
    return [blocker for part in each for blocker in part]


# The next state of a case. A blocked transition to it holds the node.
_FORWARD = {
    State.OPERATIONAL: State.REQUIRED,
    State.REQUIRED: State.IN_MAINTENANCE,
    State.IN_MAINTENANCE: State.OPERATIONAL,
}


class Answers(dict[str, CheckAnswer]):
    """The answers of checks about one situation by their names: each is asked once."""

    def __init__(self, checks: Mapping[str, Check], situation: Any) -> None:
        """Ask these checks, when their answer is needed first."""
        super().__init__()
        self._checks, self._situation = checks, situation

    def about(self, situation: Any) -> Answers:
        """Return the answers of the same checks about another situation."""
        return Answers(self._checks, situation)

    def __missing__(self, name: str) -> CheckAnswer:
        """Ask the check with this name."""
        answer = self[name] = self._checks[name](self._situation)
        return answer


Verdicts = Sequence[tuple[Step, Verdict]]
"""The transitions of a state in their order, each with what its expression says."""


def verdicts_of(rules: StateRules, answers: Answers) -> Verdicts:
    """Return the verdict of every transition, not only of the first that passes: reports show all answers."""
    return [(step, evaluate(step.check, answers.__getitem__)) for step in rules.transitions]


def first_open(
    verdicts: Verdicts, is_full: Callable[[Step], bool], *, unknown_stops: bool = False
) -> Step | None:
    """Return the first transition that passes, None without one. Those that are full count as absent.

    With `unknown_stops`, one that is unknown stops those behind it, because it may be the first that passes.
    """
    for step, verdict in verdicts:
        if is_full(step):
            continue
        if verdict is Verdict.PASSED:
            return step
        if verdict is Verdict.UNKNOWN and unknown_stops:
            return None
    return None


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


def walk(profile: Profile, situation: Situation, checks: Mapping[str, Check]) -> Walk:
    """Follow every open transition, leave each state at most once, and return what holds the node then.

    Notice is short, so a node may go from operational to in-maintenance within one pass. After the end of a
    case this pass starts no other: an event that is still reported opens the next case in the next pass.
    """
    effects: Effects = Work(situation.node, situation.record)
    taken: list[Transition] = []
    answers: dict[str, CheckAnswer] = {}
    left: set[State] = set()
    asked = Answers(checks, situation)
    while situation.state not in left:
        step = first_open(verdicts_of(profile.rules(situation.state), asked), _taken_elsewhere(situation))
        answers |= asked
        if step is None:
            break
        left.add(situation.state)
        because = _because(step, asked)
        if step.next is not situation.state:
            moved = effects.record.moved(step.next, situation.now.replace(microsecond=0))
            effects = replace(effects, record=moved)
        for trigger in (*step.triggers, *profile.rules(step.next).enter):
            effects = trigger(situation, effects)
        drains = effects.record.drain is not None and effects.record.drain != situation.record.drain
        taken.append(Transition(profile.name, situation.state, step.next, because, drains))
        situation = _after(situation, effects)
        asked = asked.about(situation)
        if step.next is State.OPERATIONAL:
            break
    # The answers to the last question still hold where no step followed.
    steps = profile.rules(situation.state).transitions
    blocked = [(step, blockers(step.check, asked.__getitem__)) for step in steps]
    alone = frozenset(blocking[0].name for _, blocking in blocked if len(blocking) == 1)
    holds = _holds(situation, blocked)
    return Walk(situation.state, effects, tuple(taken), tuple(answers.values()), holds, alone)


def _because(step: Step, answers: Answers) -> str:
    found = supporters(step.check, answers.__getitem__)
    telling = [answer for answer in found if answer.reason] or found
    reasons = dict.fromkeys(answer.words for answer in telling if answer.words)
    return "; ".join(reasons) or "the profile requires nothing for this step"


def _after(situation: Situation, effects: Effects) -> Situation:
    node = replace(situation.node, unschedulable=effects.node.unschedulable)
    judged = not_dismissed(effects.record, situation.judged)
    return replace(situation, node=node, record=effects.record, judged=judged)


def _taken_elsewhere(situation: Situation) -> Callable[[Step], bool]:
    elsewhere = situation.state is not State.IN_MAINTENANCE and bool(situation.record.elsewhere)
    # Such an event is the maintenance of another profile: it would wait for its own end.
    elsewhere = elsewhere and not any(judged.event.replaces for judged in situation.asking)
    return lambda step: elsewhere and step.next is State.IN_MAINTENANCE


def _holds(situation: Situation, blocked: Sequence[tuple[Step, Sequence[CheckAnswer]]]) -> tuple[Hold, ...]:
    found: dict[str, Hold] = {}
    is_full = _taken_elsewhere(situation)
    for step, blocking in blocked:
        # A transition that stays in the state holds the node too; one that goes back does not.
        if step.next not in (_FORWARD[situation.state], situation.state):
            continue
        if not blocking and is_full(step):
            reason = (
                f"it is in maintenance for profile {situation.record.elsewhere}; only one profile at a time"
            )
            found[ONE_PROFILE.code] = ONE_PROFILE.on(situation.node.name, reason)
        # A check that only states a fact closes a transition that this case does not need.
        if any(not answer.holds for answer in blocking):
            continue
        for answer in blocking:
            found[answer.name] = Hold(
                situation.node.name,
                answer.name,
                answer.words,
                answer.until,
                answer.waits_for,
                who=answer.who,
                by_itself=answer.by_itself,
            )
    return tuple(found.values())
