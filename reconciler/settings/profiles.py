"""A profile: three states, and the steps between them. It has the form of maintenance-controller's profiles.

The profile of platform events is a file of the package in this form. Features have profiles of people.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from reconciler.calendar.values import literal
from reconciler.model.record import State
from reconciler.settings.loose import LooseSection, LooseText

DEFAULT_PROFILE = "default"
"""The profile of nodes without the label that selects one. It has no transitions unless the file has it."""

SEPARATOR = "--"
"""Joins the names of profiles in the label of a node."""


class Chain(tuple[str, ...]):
    """The names of a chain of triggers or notifications, in order."""

    __slots__ = ()


def _chain(value: object) -> Chain:
    if isinstance(value, Chain):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{literal(value)} is not a chain of names, like `first && second`")
    parts = tuple(part.strip() for part in value.split("&&")) if value.strip() else ()
    if not all(parts):
        raise ValueError(f"{literal(value)}: a name is missing beside &&")
    return Chain(parts)


ChainText = Annotated[Chain, PlainValidator(_chain), WithJsonSchema({"type": "string"})]


def _profile_name(value: object) -> str:
    # It is a part of a label's value.
    text = value.strip() if isinstance(value, str) else ""
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", text) or SEPARATOR in text:
        raise ValueError(f"{literal(value)} is not a name that the label of a node can have, without `--`")
    return text


ProfileName = Annotated[str, PlainValidator(_profile_name), WithJsonSchema({"type": "string"})]


class TransitionSettings(LooseSection):
    """One step from a state to another one."""

    # maintenance-controller ignores other keys. But without its misspelt `check`, a step passes always.
    model_config = ConfigDict(extra="forbid")

    check: LooseText = Field(
        default="", description="Checks, joined by `&&`, `||`, `!` and brackets; empty passes."
    )
    trigger: ChainText = Field(default=Chain(), description="Triggers, which run in order. Default: none.")
    next: State = Field(description="The state after it.")


class StateSettings(LooseSection):
    """What happens in one state."""

    enter: ChainText = Field(
        default=Chain(), description="Triggers that run once after its entry. Default: none."
    )
    notify: ChainText = Field(default=Chain(), description="Notifications. Default: none.")
    transitions: tuple[TransitionSettings, ...] = Field(
        default=(), description="Steps out of it; the first that passes is taken. Default: none."
    )


_AFTER = {
    "operational": State.REQUIRED.value,
    "maintenance-required": State.IN_MAINTENANCE.value,
    "in-maintenance": State.OPERATIONAL.value,
}


class ProfileSettings(LooseSection):
    """A profile: three states, and the steps between them."""

    name: ProfileName = Field(description="The name in the label.")
    operational: StateSettings = Field(default_factory=StateSettings, description="The node is in service.")
    required: StateSettings = Field(
        default_factory=StateSettings,
        alias="maintenance-required",
        description="The node waits for maintenance.",
    )
    in_maintenance: StateSettings = Field(
        default_factory=StateSettings, alias="in-maintenance", description="Maintenance takes place."
    )

    @model_validator(mode="before")
    @classmethod
    def _older_form(cls, data: Any) -> Any:
        """Give a state of the older form `{check, trigger}` its one transition."""
        if not isinstance(data, dict):
            return data
        profile = dict(data)
        for state, after in _AFTER.items():
            rules = data.get(state)
            if isinstance(rules, dict) and "check" in rules and "transitions" not in rules:
                step = {key: rules[key] for key in ("check", "trigger") if rules.get(key) is not None}
                rest = {key: value for key, value in rules.items() if key not in ("check", "trigger")}
                profile[state] = {**rest, "transitions": [{**step, "next": after}]}
        return profile

    def rules(self, state: State) -> StateSettings:
        """Return what happens in a state."""
        found = {State.OPERATIONAL: self.operational, State.REQUIRED: self.required}
        return found.get(state, self.in_maintenance)
