"""The workflows of the settings, ready to run: each instance with its type, each chain with its instances."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, reduce
from operator import or_
from typing import Any

from msgspec import Struct, field

from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.notifying import Notification
from reconciler.features.workflows.plugins import CheckType
from reconciler.features.workflows.trigger import TriggerInput, Worked
from reconciler.features.workflows.triggers import TRIGGER_TYPES
from reconciler.model.expression import Expression, names, parse
from reconciler.model.limits import without_slack_markup
from reconciler.model.plan import CheckAnswer
from reconciler.model.problems import internal
from reconciler.model.record import State
from reconciler.model.workflow import LeaseTake, Needs
from reconciler.profiles.plugins import unknown
from reconciler.settings.sections import notify_types
from reconciler.settings.sections.trigger_types import (
    AlterAnnotation,
    AlterHypervisor,
    AlterLabel,
    Draining,
    Eviction,
    EvictionAction,
)
from reconciler.settings.sections.workflows import (
    DEFAULT_PROFILE,
    SEPARATOR,
    CheckInstance,
    NotifyInstance,
    ProfileSettings,
    StateSettings,
    TriggerInstance,
    WorkflowSettings,
)


class Check(Struct, frozen=True):
    """An instance of a check."""

    name: str
    type: CheckType
    config: Any

    def ask(self, given: CheckInput) -> CheckAnswer:
        """Return the answer. An error in the check is an unknown answer, and harms nothing else."""
        try:
            found = self.type.ask(self.config, given)
        except Exception as error:  # noqa: BLE001 - one check's error is an unknown answer
            found = unknown(internal(f"node {given.node.name}: check {self.name} failed", error))
        return CheckAnswer(self.name, found.verdict, found.reason, found.until, found.holds)

    def takes(self, given: CheckInput) -> LeaseTake | None:
        """Return the Lease that the node takes with a transition that asks this check, None if none."""
        return self.type.takes(self.config, given)

    @property
    def needs(self) -> Needs:
        """What the check reads beyond the names of the nodes."""
        return self.type.needs(self.config)


class Trigger(Struct, frozen=True):
    """An instance of a trigger."""

    name: str
    kind: str
    config: Any

    def do(self, given: TriggerInput) -> Worked:
        """Return the work with what the trigger changes."""
        return TRIGGER_TYPES[self.kind].do(self.config, given)

    def missing(self, given: TriggerInput) -> str:
        """Return why the trigger can't be carried out now, empty if it can."""
        return TRIGGER_TYPES[self.kind].missing(self.config, given)

    @property
    def draining(self) -> Draining | None:
        """How it drains the node, None if it does not."""
        config = self.config
        if not isinstance(config, Draining):
            return None
        return None if isinstance(config, Eviction) and config.action is not EvictionAction.DRAIN else config


class Step(Struct, frozen=True):
    """One transition; `asks` are the names of the checks in its expression, and `text` is the expression."""

    check: Expression
    text: str
    asks: tuple[str, ...]
    triggers: tuple[Trigger, ...]
    next: State


class Rules(Struct, frozen=True):
    """What happens in one state."""

    enter: tuple[Trigger, ...] = ()
    notify: tuple[Notification, ...] = ()
    steps: tuple[Step, ...] = ()


class Workflow(Struct, frozen=True):
    """One profile of the settings."""

    name: str
    states: Mapping[State, Rules] = field(default_factory=dict)

    def rules(self, state: State) -> Rules:
        """Return what happens in a state."""
        return self.states.get(state, Rules())


class Workflows(Struct, frozen=True, dict=True):
    """All workflows of the settings, by name, and the checks by the names of their instances."""

    by_name: Mapping[str, Workflow] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    triggers: Mapping[str, Trigger] = field(default_factory=dict)
    notifications: Mapping[str, Notification] = field(default_factory=dict)

    @property
    def on(self) -> bool:
        """Whether there is any workflow."""
        return bool(self.by_name)

    def selected(self, label: str) -> tuple[str, ...]:
        """Return the profiles that the label of a node selects. Names that do not exist are left out."""
        wanted = (label or DEFAULT_PROFILE).split(SEPARATOR)
        return tuple(dict.fromkeys(name for name in wanted if name in self.by_name))

    @cached_property
    def needs(self) -> Needs:
        """What all checks, triggers and messages read, apart from the names of the nodes."""
        changed = [one.config for one in self.triggers.values()]
        labels = frozenset(one.key for one in changed if isinstance(one, AlterLabel))
        annotations = frozenset(one.key for one in changed if isinstance(one, AlterAnnotation))
        for notification in self.notifications.values():
            labels |= notification.reads("Labels")
            annotations |= notification.reads("Annotations")
        hypervisors = any(isinstance(one, AlterHypervisor) for one in changed)
        each = (one.needs for one in self.checks.values())
        of_triggers = Needs(labels=labels, annotations=annotations, hypervisors=hypervisors)
        return reduce(or_, each, of_triggers)


_NO_WORKFLOWS = Workflows()


def workflows_of(settings: WorkflowSettings) -> Workflows:
    """Return the workflows of these settings. The profile `default` is empty unless they define it."""
    if not settings.on:
        return _NO_WORKFLOWS
    checks = {one.name: _check(one) for one in settings.instances.check}
    triggers = {one.name: _trigger(one) for one in settings.instances.trigger}
    notifications = {one.name: _notification(one) for one in settings.instances.notify}
    found = {one.name: _workflow(one, triggers, notifications) for one in settings.profiles}
    return Workflows({DEFAULT_PROFILE: Workflow(DEFAULT_PROFILE), **found}, checks, triggers, notifications)


def _check(instance: CheckInstance) -> Check:
    return Check(instance.name, CHECK_TYPES[instance.type], instance.settings)


def _trigger(instance: TriggerInstance) -> Trigger:
    return Trigger(instance.name, instance.type, instance.settings)


def _notification(instance: NotifyInstance) -> Notification:
    config, schedule = instance.settings, instance.schedule.settings.times
    if isinstance(config, notify_types.Slack):
        # The template may have markup of Slack, but what it inserts may not.
        return Notification(instance.name, schedule, config.message, escape=without_slack_markup)
    title = config.title if isinstance(config, notify_types.SlackThread) else ""
    return Notification(instance.name, schedule, config.message, title)


def _workflow(
    profile: ProfileSettings,
    triggers: Mapping[str, Trigger],
    notifications: Mapping[str, Notification],
) -> Workflow:
    states = {state: _rules(profile.rules(state), triggers, notifications) for state in State}
    return Workflow(profile.name, states)


def _rules(
    rules: StateSettings, triggers: Mapping[str, Trigger], notifications: Mapping[str, Notification]
) -> Rules:
    steps = []
    for one in rules.transitions:
        tree = parse(one.check)
        chain = tuple(triggers[name] for name in one.trigger)
        steps.append(Step(tree, one.check, names(tree), chain, one.next))
    enter = tuple(triggers[name] for name in rules.enter)
    return Rules(enter, tuple(notifications[name] for name in dict.fromkeys(rules.notify)), tuple(steps))
