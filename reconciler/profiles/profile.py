"""Profiles: maintenance workflows with three states, as data."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from msgspec import Struct, field

from reconciler.model.expression import Expression, parse
from reconciler.model.record import State
from reconciler.profiles.plugins import Trigger
from reconciler.settings.sections.workflows import ProfileSettings, StateSettings
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


class Profile(Struct, frozen=True):
    """One maintenance workflow."""

    name: str
    states: Mapping[State, StateRules] = field(default_factory=dict)

    def rules(self, state: State) -> StateRules:
        """Return the rules of one state, empty if the profile has none for it."""
        return self.states.get(state, _NO_RULES)


def profile_of(settings: ProfileSettings, triggers: Mapping[str, Trigger]) -> Profile:
    """Return a profile of settings with its triggers, which all exist."""
    return Profile(settings.name, {state: _rules(settings.rules(state), triggers) for state in State})


def _rules(rules: StateSettings, triggers: Mapping[str, Trigger]) -> StateRules:
    def chain(names: tuple[str, ...]) -> tuple[Trigger, ...]:
        return tuple(triggers[name] for name in names)

    steps = tuple(
        Step(parse(step.check), step.check, chain(step.trigger), step.next) for step in rules.transitions
    )
    return StateRules(chain(rules.enter), steps, tuple(dict.fromkeys(rules.notify)))


def builtin(name: str, triggers: Mapping[str, Trigger]) -> Profile:
    """Return a profile of the package, which has the form that a user would write."""
    document = read_yaml(files("reconciler.profiles").joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    assert isinstance(document.value, dict)
    settings = ProfileSettings.model_validate({"name": name, **document.value}, by_alias=True, by_name=False)
    return profile_of(settings, triggers)
