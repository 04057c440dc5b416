"""`events` and `conditions`: what the reconciler does about each of them."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from reconciler.model.event import Kind
from reconciler.model.structs import replace
from reconciler.settings.policies import (
    ApprovalMissing,
    EventPolicy,
    OutsideWindow,
    Start,
    Treatment,
    UserInitiated,
)
from reconciler.settings.sections.fields import Duration, Flag
from reconciler.settings.sections.section import Section


class Meaning(Section):
    """What the reconciler does about an event or a condition. Keys left out have the default of the kind."""

    drain: Flag | None = Field(
        default=None, description="Whether the node is drained. Default: by kind, see the table."
    )
    outside_window: OutsideWindow | None = Field(
        default=None,
        description="What happens while no window is open. Never: no drain starts. AtDeadline: the drain "
        "waits for a window that opens before the deadline, and otherwise starts at the deadline. "
        "Immediately: the drain starts at once. Default: by kind, see the table.",
    )
    empty_dir: Treatment | None = Field(
        default=None,
        description="What happens to a pod with an emptyDir volume. Keep: the pod stays, and the others are "
        "drained. Evict: the pod is evicted. Default: by kind, `Evict` where the disk of the node is lost "
        "anyway.",
    )
    unmanaged_pods: Treatment | None = Field(
        default=None,
        description="What happens to a pod without a controller, which nothing would create again. Keep: the "
        "pod stays, and the others are drained. Evict: the pod is evicted. Default: by kind, `Evict` where "
        "the VM is lost anyway.",
    )
    replace: Flag | None = Field(
        default=None,
        description="Whether the machine is replaced once the node is drained, instead of waiting for the "
        "end of the maintenance. See docs/replacing.md. Default: `false`.",
    )
    approval: Flag | None = Field(
        default=None,
        description="Whether a person has to approve the drain with `reconciler approve` before it starts. "
        "See docs/approvals.md. Default: `false`.",
    )

    def over(self, below: EventPolicy) -> EventPolicy:
        """Return the policy `below`, with the keys that are set here replaced."""
        given = {name: getattr(self, name) for name in self.model_fields_set if name != "for_"}
        changed = {name: value for name, value in given.items() if value is not None}
        return replace(below, **changed) if changed else below


class EventMeaning(Meaning):
    """What the reconciler does about one kind of event."""

    min_duration: Duration | None = Field(
        default=None,
        description="An event that is shorter than this is ignored. An event of unknown duration is never "
        "too short. Default: `0s`.",
    )
    lead_time: Duration | None = Field(
        default=None,
        description="The deadline for the start of the drain, as the time before the `notBefore` of the "
        "event. Default: by kind, see the table.",
    )
    start: Start | None = Field(
        default=None,
        description="When a drain starts for an event with a date. Late: at most `ahead` before its latest "
        "start, so that the node is not empty for hours. Early: as soon as windows and budget allow it. "
        "Default: `Late` if the platform decides when the maintenance begins; `Early` if the reconciler "
        "decides (`acknowledge`, `replace`, self-service), or if the hardware under the VM fails. See "
        "docs/planning.md.",
    )
    ahead: Duration | None = Field(
        default=None,
        description="How long before its latest start a `Late` drain may start. The latest start is the last "
        "moment, not after the deadline, at which windows and freezes allow a start and leave the "
        "`leadTime`. Default: `1h`.",
    )
    approval_missing: ApprovalMissing | None = Field(
        default=None,
        description="What happens at the deadline if `approval` is true and nobody has approved the drain. "
        "Hold: no drain starts. Proceed: the drain starts without an approval. Default: `Hold`.",
    )
    acknowledge: Flag | None = Field(
        default=None,
        description="Whether the reconciler asks Azure to start the event early, once every VM of the event "
        "is a drained node of this cluster. It needs the node agent. See docs/azure.md#8-acknowledging. "
        "Default: `false`.",
    )


class ConditionMeaning(Meaning):
    """What the reconciler does about a node condition that is True."""

    for_: Duration | None = Field(
        default=None,
        alias="for",
        description="How long the condition must have been True before it counts. Default: `0s`.",
    )

    def over(self, below: EventPolicy) -> EventPolicy:
        """Return the policy `below`, with the keys that are set here replaced."""
        merged = Meaning.over(self, below)
        return merged if self.for_ is None else replace(merged, for_=self.for_)


def _pascal(name: str) -> str:
    return to_camel(name) if name == "user_initiated" else "".join(part.title() for part in name.split("_"))


class Events(Section):
    """What the reconciler does about each kind of event. Kinds left out have their defaults."""

    model_config = ConfigDict(alias_generator=_pascal)

    freeze: EventMeaning = Field(default=EventMeaning(), description="The VM pauses for some seconds.")
    live_migration: EventMeaning = Field(
        default=EventMeaning(), description="The VM moves to another host, with a pause of some seconds."
    )
    reboot: EventMeaning = Field(default=EventMeaning(), description="The VM restarts. It keeps its disks.")
    redeploy: EventMeaning = Field(
        default=EventMeaning(), description="The VM moves to another host. Its temporary disk is lost."
    )
    preempt: EventMeaning = Field(
        default=EventMeaning(), description="A spot VM is evicted, with a notice of 30 s at most."
    )
    terminate: EventMeaning = Field(default=EventMeaning(), description="The VM is deleted.")
    rebalance: EventMeaning = Field(
        default=EventMeaning(),
        description="AWS recommends to replace a spot instance that may be interrupted soon.",
    )
    unknown: EventMeaning = Field(
        default=EventMeaning(),
        description="An event that the reconciler cannot read. It is reported with its text.",
    )
    user_initiated: UserInitiated | None = Field(
        default=None,
        description="What happens when a user of the subscription reboots or redeploys a VM, which starts at "
        "once. Report: the event is only reported. Drain: it is treated like an event of the platform. "
        "Default: `Report`.",
    )

    def of(self, kind: Kind) -> EventMeaning:
        """Return the settings of a kind."""
        meaning: EventMeaning = getattr(self, kind.name.lower())
        return meaning
