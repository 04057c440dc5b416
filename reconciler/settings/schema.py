"""The settings file as a whole: a tree of frozen values, and what it means for a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from reconciler.calendar.windows import Calendar, NotAllowed, Window
from reconciler.model.event import Kind
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys
from reconciler.model.selector import EVERYTHING
from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.policies import CONDITION_DEFAULT, DEFAULTS, EventPolicy, UserInitiated
from reconciler.settings.sections.budget import Budget
from reconciler.settings.sections.draining import Drain
from reconciler.settings.sections.fields import ConditionType, Duration, Prefix, Selector, Zone
from reconciler.settings.sections.meanings import ConditionMeaning, Events
from reconciler.settings.sections.others import Adoptable, Coexist, Sign
from reconciler.settings.sections.replace import Replacing
from reconciler.settings.sections.section import Section
from reconciler.settings.sections.sources import Sources
from reconciler.settings.sections.times import NotAllowedSettings, WindowSettings
from reconciler.settings.times import ends_before_it_starts, times_of

_PUBLISHED = frozenset({"MaintenancePlanned", "MaintenanceInProgress", "DrainInProgress", "Drained"})


class Mode(StrEnum):
    """How far the program goes."""

    OBSERVE = "Observe"
    """It writes nothing at all."""

    ENFORCE = "Enforce"
    FINISH = "Finish"
    """It starts nothing new, and finishes and uncordons what is its own."""


class Uncordon(Section):
    """When a node comes back."""

    settle: Duration = Field(
        default=timedelta(minutes=2),
        description="The event gone and the node Ready, both for so long: platforms repeat themselves.",
    )


class Keys(Section):
    """What our labels and annotations are called."""

    prefix: Prefix = Field(
        default=DEFAULT_PREFIX,
        description="The DNS name before the slash. Two installations in a cluster need two.",
    )


class Override(Section):
    """What is different on some nodes; later ones win, key by key."""

    node_selector: Selector = Field(default=EVERYTHING, description="Which nodes it is for. Default: all.")
    events: Events = Field(default=Events(), description="As `events`; what isn't said here stays as it was.")
    conditions: dict[ConditionType, ConditionMeaning] = Field(
        default={}, description="As `conditions`; what isn't said here stays as it was."
    )


class Settings(Section):
    """The whole file. `Settings()` is an empty one: every default."""

    api_version: Literal["node-maintenance.dev/v1alpha1"] = Field(
        default="node-maintenance.dev/v1alpha1", description="The version of this format. May be left out."
    )
    kind: Literal["MaintenancePolicy"] = Field(
        default="MaintenancePolicy", description="What the file is. May be left out."
    )
    mode: Mode = Field(
        default=Mode.OBSERVE,
        description="Observe: writes nothing at all. Enforce: acts. Finish: starts nothing new, finishes and "
        "uncordons what is ours. Observe, so that the first thing an installation does is report.",
    )
    node_selector: Selector = Field(
        default=EVERYTHING, description="Which nodes are looked after. Default: all."
    )
    time_zone: Zone = Field(
        default=ZoneInfo("UTC"), description="The IANA time zone for whatever names none, and for reports."
    )
    sources: Sources = Field(default=Sources(), description="Who tells of maintenance.")
    events: Events = Field(default=Events(), description="What each kind of event means here.")
    conditions: dict[ConditionType, ConditionMeaning] = Field(
        default={},
        description="Node conditions that ask for a drain while True, by their type. Default: none.",
    )
    windows: tuple[WindowSettings, ...] = Field(
        default=(),
        description="When drains may start. Several: the union. None, or none for a node: any time.",
    )
    not_allowed: tuple[NotAllowedSettings, ...] = Field(
        default=(), description="When they may not; beats windows. Default: none."
    )
    budget: Budget = Field(default=Budget(), description="How many nodes may be out of service at once.")
    drain: Drain = Field(default=Drain(), description="How nodes are emptied.")
    uncordon: Uncordon = Field(default=Uncordon(), description="When a node comes back.")
    replace: Replacing = Field(default=Replacing(), description="How machines are replaced.")
    adopt: tuple[Adoptable, ...] = Field(
        default=(), description="Tools whose cordons become ours: `mechanic`. Default: none."
    )
    publish: tuple[Sign, ...] = Field(
        default=(),
        description="What of a node's case is shown to others: `drainsafe` (its annotations), "
        "`node-conditions` (KEP-5683's), `nodemaintenances` (an object per node and event). Default: none.",
    )
    history: Duration = Field(
        default=timedelta(days=7),
        description="How long a NodeMaintenance is kept after its end. A week, so that Monday can ask about "
        "the weekend.",
    )
    coexist: Coexist = Field(default=Coexist(), description="How others who drain nodes are lived with.")
    keys: Keys = Field(default=Keys(), description="What our labels and annotations are called.")
    overrides: tuple[Override, ...] = Field(
        default=(), description="What is different on some nodes; later ones win. Default: nothing."
    )

    @model_validator(mode="after")
    def _conditions_not_our_own(self) -> Settings:
        if Sign.NODE_CONDITIONS in self.publish and (ours := self.condition_types() & _PUBLISHED):
            said = (
                f"names {min(ours)} as a reason to drain, and publish writes it: the node would stay drained"
            )
            raise Mistakes((Mistake(("conditions",), said),))
        return self

    @model_validator(mode="after")
    def _acknowledged_by_somebody(self) -> Settings:
        if self.sources.imds.enabled:
            return self
        found = [
            Mistake((*path, kind.value, "acknowledge"), "does nothing while sources.imds.enabled is false")
            for path, events in self._events()
            for kind in Kind
            if events.of(kind).acknowledge
        ]
        if found:
            raise Mistakes(tuple(found))
        return self

    @model_validator(mode="after")
    def _moments_in_order(self) -> Settings:
        found = []
        for key, entries in (("windows", self.windows), ("notAllowed", self.not_allowed)):
            for index, entry in enumerate(entries):
                mistake = ends_before_it_starts(entry, entry.time_zone or self.time_zone)
                if mistake is not None:
                    found.append(Mistake((key, index, *mistake.path), mistake.said))
        if found:
            raise Mistakes(tuple(found))
        return self

    def __copy__(self) -> Settings:
        """Copy without what was worked out: `model_copy(update=…)` may change what it came from."""
        copy = super().__copy__()
        copy.__dict__.pop("calendar", None)
        return copy

    def in_fleet(self, labels: Mapping[str, str]) -> bool:
        """Say whether a node with these labels is among those that `nodeSelector` selects."""
        return self.node_selector.matches(labels)

    def looks_after(self, labels: Mapping[str, str]) -> bool:
        """Say whether such a node is looked after: in the fleet, and not taken out by the ignore label."""
        return self.in_fleet(labels) and labels.get(OwnKeys(self.keys.prefix).ignore) != "true"

    def event_policy(self, kind: Kind, labels: Mapping[str, str]) -> EventPolicy:
        """Return what a kind of event means on such a node, overrides applied."""
        policy = self.events.of(kind).over(DEFAULTS[kind])
        for override in self._overrides_for(labels):
            policy = override.events.of(kind).over(policy)
        return policy

    def condition_policy(self, type: str, labels: Mapping[str, str]) -> EventPolicy | None:  # noqa: A002 - Kubernetes' word
        """Return what a condition means on such a node, None if the settings don't name it there."""
        policy: EventPolicy | None = None
        for conditions in (self.conditions, *(each.conditions for each in self._overrides_for(labels))):
            meaning = conditions.get(type)
            if meaning is not None:
                policy = meaning.over(policy or CONDITION_DEFAULT)
        return policy

    def condition_types(self) -> frozenset[str]:
        """Return every condition named anywhere, overrides included."""
        return frozenset(self.conditions).union(*(override.conditions for override in self.overrides))

    def replaces(self) -> bool:
        """Say whether any event or condition, on any node, has machines replaced."""
        events = [each for _, each in self._events()]
        conditions = (self.conditions, *(override.conditions for override in self.overrides))
        meanings = [each.of(kind) for each in events for kind in Kind]
        return any(one.replace for one in meanings) or any(
            one.replace for each in conditions for one in each.values()
        )

    def label_keys(self) -> frozenset[str]:
        """Name every label that a selector for nodes asks about; a list of nodes need keep no other."""
        selectors = [self.node_selector, *(override.node_selector for override in self.overrides)]
        selectors += [times.node_selector for times in (*self.windows, *self.not_allowed)]
        return frozenset(one.key for selector in selectors for one in selector.requirements)

    def user_initiated(self, labels: Mapping[str, str]) -> UserInitiated:
        """Return what a user's own event means on such a node."""
        said = [self.events, *(override.events for override in self._overrides_for(labels))]
        return next(
            (each.user_initiated for each in reversed(said) if each.user_initiated is not None),
            UserInitiated.REPORT,
        )

    def _events(self) -> Iterator[tuple[tuple[str | int, ...], Events]]:
        yield ("events",), self.events
        for index, override in enumerate(self.overrides):
            yield ("overrides", index, "events"), override.events

    def _overrides_for(self, labels: Mapping[str, str]) -> list[Override]:
        return [override for override in self.overrides if override.node_selector.matches(labels)]

    @cached_property
    def calendar(self) -> Calendar:
        """The windows and what is not allowed, ready to be asked."""
        zone = self.time_zone
        return Calendar(
            [
                Window(
                    each.name or each.title(zone), times_of(each, each.time_zone or zone), each.node_selector
                )
                for each in self.windows
            ],
            [
                NotAllowed(
                    each.name or each.title(zone),
                    times_of(each, each.time_zone or zone),
                    each.reason,
                    each.absolute,
                    each.node_selector,
                )
                for each in self.not_allowed
            ],
            zone,
        )
