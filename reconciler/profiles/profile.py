"""Profiles: maintenance workflows with three states, as data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import Any

from msgspec import Struct

from reconciler.model.errors import SettingsError
from reconciler.model.expression import Expression, ExpressionError, names, parse
from reconciler.model.record import State
from reconciler.settings.yaml import read_yaml


class Step(Struct, frozen=True):
    """One transition: when `check` passes, the triggers run in order and `next` is the new state."""

    check: Expression
    text: str
    triggers: tuple[str, ...]
    next: State


class StateRules(Struct, frozen=True):
    """The rules of one state: the triggers that run when it is entered (`enter`), and its transitions."""

    enter: tuple[str, ...] = ()
    transitions: tuple[Step, ...] = ()


_NO_RULES = StateRules()


class Profile(Struct, frozen=True):
    """One maintenance workflow."""

    name: str
    states: Mapping[State, StateRules]

    def rules(self, state: State) -> StateRules:
        """Return the rules of one state, empty if the profile has none for it."""
        return self.states.get(state, _NO_RULES)


def parse_profile(
    name: str, document: Mapping[str, Any], checks: Collection[str], triggers: Collection[str]
) -> Profile:
    """Parse a profile from its document. Raises SettingsError with all mistakes at once."""
    mistakes: list[str] = []
    states: dict[State, StateRules] = {}
    for key, rules in document.items():
        where = f"profile {name}: {key}"
        if key not in set(State):
            mistakes.append(f"{where}: no such state; write one of {', '.join(State)}")
            continue
        steps = []
        for number, step in enumerate(rules.get("transitions", ())):
            there = f"{where}: transition {number + 1}"
            try:
                check = parse(step.get("check", ""))
            except ExpressionError as error:
                mistakes.append(f"{there}: {error}")
                continue
            mistakes += [f"{there}: no check is called {one}" for one in names(check) if one not in checks]
            chain = _chain(step.get("trigger", ""))
            mistakes += [f"{there}: no trigger is called {one}" for one in chain if one not in triggers]
            if step.get("next") not in set(State):
                mistakes.append(f"{there}: next: write one of {', '.join(State)}")
                continue
            steps.append(Step(check, step.get("check", ""), chain, State(step["next"])))
        enter = _chain(rules.get("enter", ""))
        mistakes += [f"{where}: enter: no trigger is called {one}" for one in enter if one not in triggers]
        states[State(key)] = StateRules(enter, tuple(steps))
    if mistakes:
        raise SettingsError(tuple(mistakes))
    return Profile(name, states)


def _chain(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("&&") if part.strip())


def builtin(name: str, checks: Collection[str], triggers: Collection[str]) -> Profile:
    """Return a profile of the package, in the form that a user would write."""
    text = files("reconciler.profiles").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    document = read_yaml(text)
    assert isinstance(document.value, dict)
    assert not document.mistakes
    return parse_profile(name, document.value, checks, triggers)
