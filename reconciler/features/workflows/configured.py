"""The workflows of the settings, ready to run: each instance with its type, each chain with its instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, reduce
from operator import or_

from msgspec import Struct, field

from reconciler.features.workflows import notify_types
from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.features.workflows.notifying import Notification
from reconciler.features.workflows.reading import Needs
from reconciler.features.workflows.section import NotifyInstance, WorkflowSettings
from reconciler.features.workflows.situation import WorkflowCheck, WorkflowSituation
from reconciler.features.workflows.trigger_types import (
    AlterAnnotation,
    AlterHypervisor,
    AlterLabel,
    Draining,
    Eviction,
    EvictionAction,
)
from reconciler.features.workflows.triggers import TRIGGER_TYPES
from reconciler.model.leases import LeaseTake
from reconciler.model.limits import without_markup
from reconciler.model.plan import CheckAnswer
from reconciler.model.problems import internal
from reconciler.profiles.state_machine import Profile, profile_of
from reconciler.profiles.vocabulary import Check, Trigger, unknown
from reconciler.settings.profiles import DEFAULT_PROFILE, SEPARATOR


class GuardedCheck(Check, frozen=True):
    """An instance of a check."""

    type: WorkflowCheck

    def __call__(self, situation: WorkflowSituation) -> CheckAnswer:
        """Return the answer. An error in the check is an unknown answer, and harms nothing else."""
        try:
            return super().__call__(situation)
        except Exception as error:  # noqa: BLE001 - one check's error is an unknown answer
            because = internal(f"node {situation.node.name}: check {self.name} failed", error)
            return self.answer(unknown(because))

    def takes(self, situation: WorkflowSituation) -> LeaseTake | None:
        """Return the Lease that the node takes with a transition that asks this check, None if none."""
        return self.type.takes(self.config, situation)


def draining_of(chain: Iterable[Trigger]) -> Draining | None:
    """Return how a chain of triggers drains the node, None if it does not."""
    for config in (trigger.config for trigger in chain):
        if isinstance(config, Eviction):
            if config.action is EvictionAction.DRAIN:
                return config
        elif isinstance(config, Draining):
            return config
    return None


class Workflows(Struct, frozen=True, dict=True):
    """All workflows of the settings, by name, and the checks by the names of their instances."""

    by_name: Mapping[str, Profile] = field(default_factory=dict)
    checks: Mapping[str, GuardedCheck] = field(default_factory=dict)
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

    def unknown(self, label: str) -> tuple[str, ...]:
        """Return the names in the label of a node that are no profiles of the settings."""
        names = label.split(SEPARATOR) if label else []
        return tuple(dict.fromkeys(name for name in names if name not in self.by_name))

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
        each = (one.type.needs(one.config) for one in self.checks.values())
        of_triggers = Needs(labels=labels, annotations=annotations, hypervisors=hypervisors)
        return reduce(or_, each, of_triggers)


_NO_WORKFLOWS = Workflows()


def workflows_of(settings: WorkflowSettings) -> Workflows:
    """Return the workflows of these settings. The profile `default` is empty unless they define it."""
    if not settings.on:
        return _NO_WORKFLOWS
    given = settings.instances
    checks = {one.name: GuardedCheck(one.name, CHECK_TYPES[one.type], one.settings) for one in given.check}
    triggers = {one.name: Trigger(one.name, TRIGGER_TYPES[one.type], one.settings) for one in given.trigger}
    notifications = {one.name: _notification(one) for one in given.notify}
    profiles = {one.name: profile_of(one, triggers) for one in settings.profiles}
    return Workflows({DEFAULT_PROFILE: Profile(DEFAULT_PROFILE), **profiles}, checks, triggers, notifications)


def _notification(instance: NotifyInstance) -> Notification:
    config, schedule = instance.settings, instance.schedule.settings.times
    if isinstance(config, notify_types.Slack):
        # The template may have markup of Slack, but what it inserts may not.
        return Notification(instance.name, schedule, config.message, escape=without_markup)
    title = config.title if isinstance(config, notify_types.SlackThread) else ""
    return Notification(instance.name, schedule, config.message, title)
