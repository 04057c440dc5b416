"""`events` and `conditions`: what each of them means here."""

from __future__ import annotations

from dataclasses import replace

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from reconciler.model.event import Kind
from reconciler.settings.policies import EventPolicy, OutsideWindow, Treatment, UserInitiated
from reconciler.settings.sections.fields import Duration, Flag
from reconciler.settings.sections.section import Section


class Meaning(Section):
    """What an event or a condition means; what is left out is as in the kind's default."""

    drain: Flag | None = Field(
        default=None, description="Whether it asks for a drain. Default: by kind, see the table."
    )
    outside_window: OutsideWindow | None = Field(
        default=None,
        description="What happens while no window is open. Never: nothing starts. AtDeadline: a window that "
        "opens before the deadline is waited for, else the drain starts at the deadline. Immediately: "
        "on sight. Default: by kind, see the table.",
    )
    empty_dir: Treatment | None = Field(
        default=None,
        description="A pod with an emptyDir volume: Keep (it stays, and keeps only itself) or Evict. "
        "Default: by kind; Evict where the node's disk is lost anyway.",
    )
    unmanaged_pods: Treatment | None = Field(
        default=None,
        description="A pod that no controller would create again: Keep (it stays, and keeps only itself) or "
        "Evict. Default: by kind; Evict where the VM is lost anyway.",
    )
    replace: Flag | None = Field(
        default=None,
        description="Whether the drained node's machine is deleted, so that a new one comes, instead of "
        "waiting for the end; see docs/replacing.md. Default: false.",
    )

    def over(self, below: EventPolicy) -> EventPolicy:
        """Return `below` with what is said here in its place."""
        given = {name: getattr(self, name) for name in type(self).model_fields if name not in ("for_",)}
        return replace(below, **{name: value for name, value in given.items() if value is not None})


class EventMeaning(Meaning):
    """What one kind of event means."""

    min_duration: Duration | None = Field(
        default=None,
        description="A shorter event is let pass; one of unknown duration counts as long. Default: 0s, "
        "so that none is let pass for its length.",
    )
    lead_time: Duration | None = Field(
        default=None,
        description="How long before the event's notBefore a drain has to start at the latest: the "
        "deadline. Default: by kind, see the table.",
    )
    acknowledge: Flag | None = Field(
        default=None,
        description="Whether Azure is told to start it now, instead of at the end of the notice, once every "
        "VM that it names is a node of this cluster and drained. It needs the node agent. Default: false.",
    )


class ConditionMeaning(Meaning):
    """What a node condition means that is True."""

    for_: Duration | None = Field(
        default=None,
        alias="for",
        description="How long the condition must have been True. Default: 0s, at once.",
    )

    def over(self, below: EventPolicy) -> EventPolicy:
        """Return `below` with what is said here in its place."""
        merged = Meaning.over(self, below)
        return merged if self.for_ is None else replace(merged, for_=self.for_)


def _pascal(name: str) -> str:
    return to_camel(name) if name == "user_initiated" else "".join(part.title() for part in name.split("_"))


class Events(Section):
    """What each kind of event means; what isn't said here is as in the kind's default."""

    model_config = ConfigDict(alias_generator=_pascal)

    freeze: EventMeaning = Field(default=EventMeaning(), description="The VM stands still for some seconds.")
    live_migration: EventMeaning = Field(
        default=EventMeaning(), description="The VM moves to another host, standing still for some seconds."
    )
    reboot: EventMeaning = Field(default=EventMeaning(), description="The VM restarts; its disks stay.")
    redeploy: EventMeaning = Field(
        default=EventMeaning(), description="The VM moves to another host; its temporary disk is lost."
    )
    preempt: EventMeaning = Field(
        default=EventMeaning(), description="A spot VM is taken away, 30 s from now at best."
    )
    terminate: EventMeaning = Field(default=EventMeaning(), description="The VM is deleted.")
    rebalance: EventMeaning = Field(
        default=EventMeaning(),
        description="Spot's rebalance recommendation: advice, not an event, and nothing is drained for it.",
    )
    unknown: EventMeaning = Field(
        default=EventMeaning(), description="What could not be read: it is told of, with its text."
    )
    user_initiated: UserInitiated | None = Field(
        default=None,
        description="Somebody's own reboot or redeploy of a VM, which starts at once. Report: it is told "
        "of. Drain: it is treated as the platform's. Default: Report.",
    )

    def of(self, kind: Kind) -> EventMeaning:
        """Return what is said of a kind."""
        meaning: EventMeaning = getattr(self, kind.name.lower())
        return meaning
