"""What `reconciler check-config` says of workflows: what they do, what to check, and what they need."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from reconciler.features.workflows.check_types import HypervisorCheck, HypervisorConditionCheck, StaggerCheck
from reconciler.features.workflows.go_templates import KNOWN, mistake_in, printed_whole
from reconciler.features.workflows.notify_types import SlackThread
from reconciler.features.workflows.section import WorkflowSettings, idle
from reconciler.features.workflows.trigger_types import (
    AlterAnnotation,
    AlterFinalizer,
    AlterHypervisor,
    AlterLabel,
    AlterTaint,
    Draining,
)
from reconciler.model.grants import Grants, LeaseGrant
from reconciler.model.record import State
from reconciler.settings.loose import LooseSection
from reconciler.settings.mistakes import KeyWarning, Path, spelt
from reconciler.settings.schema import Mode, Settings

_NO_KEY = ("is ignored: there is no such key", "remove it, or correct its name")


def explained(workflows: WorkflowSettings, settings: Settings) -> Iterator[str]:
    """Yield what the workflows of the settings do, one line each."""
    key = settings.keys.names.maintenance_profile
    names = ", ".join(profile.name for profile in workflows.profiles)
    yield f"  The label {key} of a node selects some of these, joined by --: {names}."
    if workflows.intervals.requeue is not None:
        seconds = workflows.intervals.requeue.total_seconds()
        yield f"  reconciler serve examines the nodes every {seconds:g}s at least."
    for notification in workflows.instances.notify:
        states = [
            f"{state} of {profile.name}"
            for profile in workflows.profiles
            for state in State
            if notification.name in profile.rules(state).notify
        ]
        where = f"in {', '.join(states)}" if states else "in no state of a profile"
        times = notification.schedule.settings.times
        yield f"  Notification {notification.name} ({notification.type}): {times}, {where}."
    if settings.origin.foreign:
        yield "  The file was written for maintenance-controller, so nothing else happens."


def warnings(workflows: WorkflowSettings, settings: Settings) -> Iterator[KeyWarning]:
    """Yield what a person should check in the workflows of the settings, with its path in the file."""
    outer: Path = () if settings.origin.foreign else ("profiles",)
    for place, instance in enumerate(workflows.instances.notify):
        here = (*outer, "instances", "notify", place)
        config = (*here, "config")
        for key, message in instance.settings.unusable:
            yield KeyWarning(spelt((*config, key)), f"{message}; {instance.name} is never sent", "correct it")
        if settings.mode is Mode.OBSERVE:
            yield KeyWarning(spelt(here), "is not sent in mode Observe", "set another mode")
        for key in ("message", "title"):
            text = getattr(instance.settings, key, "")
            for name in printed_whole(text, KNOWN):
                what = f"has only the keys of {name} that the settings use, where Go prints all as map[...]"
                change = f'name each key that the text needs: {{{{ index {name} "KEY" }}}}'
                yield KeyWarning(spelt((*config, key)), what, change)
            mistake = mistake_in(text, KNOWN)
            if mistake:
                what = (
                    f"can't be rendered, so the plain facts are sent, with the lines that can be: {mistake}"
                )
                yield KeyWarning(spelt((*config, key)), what, "correct it, see docs/workflows.md")
    for index, check in enumerate(workflows.instances.check):
        for key, message in check.settings.unusable:
            where = spelt((*outer, "instances", "check", index, "config", key))
            yield KeyWarning(
                where, f"{message}; {check.name} is always unknown, and never passes", "correct it"
            )
    for path, message in settings.origin.unlike:
        yield KeyWarning(spelt(path), message, "write it in quotes, or true or false")
    for scalar in settings.origin.changed:
        if scalar.path in dict(settings.origin.unlike):
            continue
        line = scalar.place[0]
        message = f"is {scalar.read}, which YAML makes of {scalar.written} on line {line}"
        what = f'write "{scalar.written}", in quotes, if that text is meant'
        if "notify" in scalar.path:
            # It may be a secret.
            message = f"is another text than that on line {line}, which YAML reads as a number or a boolean"
            what = "write it in quotes, if that text is meant"
        yield KeyWarning(spelt(scalar.path), message, what, line)
    if settings.origin.foreign and (nothing := idle(workflows)):
        yield KeyWarning("profiles", nothing, "add profiles, or see docs/migrating.md#esx-and-kubernikus")
    for path, (message, change) in _ignored(workflows, outer):
        yield KeyWarning(spelt(path), message, change)


def _ignored(section: BaseModel, path: Path) -> Iterator[tuple[Path, tuple[str, str]]]:
    """Yield each key that a section, or one below it, does not know, with what to say of it."""
    known = section.without_effect if isinstance(section, LooseSection) else {}
    for key in sorted(section.model_extra or ()):
        yield (*path, key), known.get(key, _NO_KEY)
    config = getattr(section, "settings", None)
    if isinstance(config, BaseModel):
        yield from _ignored(config, (*path, "config"))
    for name, field in type(section).model_fields.items():
        here = (*path, str(field.alias))
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _ignored(value, here)
        elif isinstance(value, tuple):
            for place, entry in enumerate(value):
                if isinstance(entry, BaseModel):
                    yield from _ignored(entry, (*here, place))


_ROLE = "node-maintenance-workflows"
"""The name of the Role for the Leases of workflows."""


def grants(workflows: WorkflowSettings, prefix: str) -> Grants:
    """Return what checks, triggers and notifications need beyond `k8s/base`; our keys have this prefix."""
    ours, given = f"{prefix}/", workflows.instances
    keys: dict[str, list[str]] = {"Labels": [], "Annotations": [], "Taints": [], "Finalizers": []}
    leases: dict[str, list[str]] = {}
    folders = ["k8s/shuffles"] if workflows.shuffle_counts else []
    for instance in (*given.trigger, *given.check, *given.notify):
        match instance.settings:
            case AlterLabel(key=key) if not key.startswith(ours):
                keys["Labels"].append(key)
            case AlterAnnotation(key=key) if not key.startswith(ours):
                keys["Annotations"].append(key)
            case AlterTaint(key=key):
                keys["Taints"].append(key)
            case AlterFinalizer(key=key):
                keys["Finalizers"].append(key)
            case AlterHypervisor() | HypervisorCheck() | HypervisorConditionCheck():
                folders.append("k8s/hypervisors")
            case Draining(force_eviction=True):
                folders.append("k8s/escalation")
            case StaggerCheck() as stagger:
                for namespace, name in stagger.leases:
                    leases.setdefault(namespace, []).append(name)
            case SlackThread(unusable=()) as thread:
                leases.setdefault(thread.lease_namespace, []).append(thread.lease_name)
    return Grants(
        keys={kind: tuple(names) for kind, names in keys.items()},
        leases=tuple(LeaseGrant(_ROLE, namespace, tuple(names)) for namespace, names in leases.items()),
        folders=tuple(folders),
    )
