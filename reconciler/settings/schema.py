"""The settings file as a tree of frozen values; each key says what it is, its unit, and why its default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, Strict, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from reconciler.model.drain import Behavior
from reconciler.model.event import Kind
from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.policies import (
    CONDITION_DEFAULT,
    DEFAULTS,
    EventPolicy,
    OutsideWindow,
    Treatment,
    UserInitiated,
)
from reconciler.settings.selectors import EVERYTHING, LabelSelector, parse_selector
from reconciler.settings.times import ends_before_it_starts, mistakes_in, times_of
from reconciler.settings.values import (
    Limit,
    TimeOfDay,
    parse_days,
    parse_duration,
    parse_limit,
    parse_time_or_moment,
    parse_zone,
    shown,
)
from reconciler.settings.windows import Calendar, NotAllowed, Window

API_VERSION = "node-maintenance.dev/v1alpha1"
KIND = "MaintenancePolicy"


_PUBLISHED = frozenset({"MaintenancePlanned", "MaintenanceInProgress", "DrainInProgress", "Drained"})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not text; write it in quotes")
    if not value.strip():
        raise ValueError("is empty")
    return value


_CLUSTER_ID = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ContainerService/managedClusters/[^/]+",
    re.IGNORECASE,
)


def _cluster_id(value: object) -> str:
    text = _text(value)
    if not _CLUSTER_ID.fullmatch(text):
        raise ValueError(
            f"{shown(value)} is no managed cluster's resource id; `az aks show --query id` prints it"
        )
    return text


def _prefix(value: object) -> str:
    text = _text(value)
    label = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
    if len(text) > 253 or not re.fullmatch(rf"{label}(?:\.{label})*", text):
        raise ValueError(f"{shown(text)} is not a DNS name in small letters, like node-maintenance.dev")
    return text


def _condition_type(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9./_-]{0,314}[A-Za-z0-9])?", text):
        raise ValueError(f"{shown(text)} is not the type of a node condition")
    if text == "Ready":
        # True is the healthy answer here: it would drain every node that is well.
        raise ValueError(
            "a node is Ready when it is well; name a condition that is True when something is wrong"
        )
    return text


def _positive(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{shown(value)} is not a whole number from 1 on")
    return value


_DURATION_SCHEMA = {
    "type": ["string", "integer"],
    "pattern": "^(0|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$",
}
_TEXT = {"type": "string", "minLength": 1}
_SELECTOR_SCHEMA = {
    "anyOf": [
        {"type": "object", "additionalProperties": {"type": "string"}},
        {
            "type": "object",
            "properties": {
                "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
                "matchExpressions": {"type": "array", "items": {"type": "object"}},
            },
            "additionalProperties": False,
        },
    ]
}
_DAYS_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "integer"]}}]}

Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Duration = Annotated[timedelta, PlainValidator(parse_duration), WithJsonSchema(_DURATION_SCHEMA)]
Text = Annotated[str, PlainValidator(_text), WithJsonSchema(_TEXT)]
Zone = Annotated[ZoneInfo, PlainValidator(parse_zone), WithJsonSchema(_TEXT)]
Selector = Annotated[LabelSelector, PlainValidator(parse_selector), WithJsonSchema(_SELECTOR_SCHEMA)]
Days = Annotated[frozenset[int], PlainValidator(parse_days), WithJsonSchema(_DAYS_SCHEMA)]
TimeOrMoment = Annotated[
    TimeOfDay | datetime, PlainValidator(parse_time_or_moment), WithJsonSchema({"type": "string"})
]
Share = Annotated[
    Limit, PlainValidator(parse_limit), WithJsonSchema({"type": ["integer", "string"], "minimum": 0})
]
Count = Annotated[int, PlainValidator(_positive), WithJsonSchema({"type": "integer", "minimum": 1})]
ClusterId = Annotated[str, PlainValidator(_cluster_id), WithJsonSchema(_TEXT)]
Prefix = Annotated[str, PlainValidator(_prefix), WithJsonSchema(_TEXT)]
ConditionType = Annotated[str, PlainValidator(_condition_type), WithJsonSchema(_TEXT)]


class Section(BaseModel):
    """A mapping of the file. Unknown keys are mistakes; a section left empty is as if it weren't there."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        arbitrary_types_allowed=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _without_empty_sections(cls, data: Any) -> Any:
        """Drop `budget:` with nothing below it, as Kubernetes does: its keys were all commented out."""
        if data is None:
            return {}
        if not isinstance(data, dict) or None not in data.values():
            return data
        sections = {
            field.alias
            for field in cls.model_fields.values()
            if isinstance(
                field.get_default(call_default_factory=True), Section | tuple | dict | LabelSelector
            )
        }
        return {key: value for key, value in data.items() if value is not None or key not in sections}


class Mode(StrEnum):
    """How far the program goes."""

    OBSERVE = "Observe"
    """It writes nothing at all."""

    ENFORCE = "Enforce"
    FINISH = "Finish"
    """It starts nothing new, and finishes and uncordons what is its own."""


class NodeConditionsSource(Section):
    """Node conditions, such as node-problem-detector's `VMEventScheduled`."""

    enabled: Flag = Field(default=True, description="Whether node conditions are read.")
    stale_after: Duration = Field(
        default=timedelta(minutes=15),
        description="Without a heartbeat for so long, a condition is unknown. Three of the five-minute "
        "heartbeats that node-problem-detector sends.",
    )


class ImdsSource(Section):
    """Scheduled events of the instance metadata service."""

    enabled: Flag = Field(
        default=True, description="Whether what the node agent published on its node is read."
    )


class RequestsSource(Section):
    """Requests by hand or by other automation."""

    enabled: Flag = Field(default=True, description="Whether the annotation `<keys.prefix>/request` is read.")


class AzureCloud(StrEnum):
    """The clouds that Azure has."""

    PUBLIC = "Public"
    CHINA = "China"
    US_GOVERNMENT = "USGovernment"


# Azure counts calls by the minute; asking more often than a pass runs would tell nothing new.
_OFTEN = timedelta(minutes=1)


class ArmSource(Section):
    """Azure Resource Manager: reboots that Azure plans weeks ahead."""

    enabled: Flag = Field(
        default=False,
        description="Whether it is asked; it needs an identity with rights to read VMs, see docs/azure.md.",
    )
    every: Duration = Field(
        default=timedelta(minutes=15),
        description="How often it is asked: one list for each uniform scale set, one for all other VMs of a "
        "subscription. At least 1m.",
    )
    cloud: AzureCloud = Field(
        default=AzureCloud.PUBLIC, description="Which Azure: Public, China or USGovernment."
    )
    ahead: Duration = Field(
        default=timedelta(days=1),
        description="How long before Azure's own maintenance window a drain may start at the earliest, so "
        "that no node stands empty for weeks; from then on windows and deadline decide.",
    )
    self_service: Flag = Field(
        default=False,
        description="Whether maintenance that Azure lets us start ourselves is started, on a drained node in "
        "one of our own windows. False: docs/azure.md says first what AKS supports.",
    )

    @model_validator(mode="after")
    def _not_too_often(self) -> ArmSource:
        found = []
        if self.every < _OFTEN:
            found.append(Mistake(("every",), "is shorter than 1m: ARM counts calls by the minute"))
        if self.self_service and not self.enabled:
            found.append(Mistake(("selfService",), "does nothing while sources.arm.enabled is false"))
        if found:
            raise Mistakes(tuple(found))
        return self


class AwsSource(Section):
    """AWS's EC2 API: scheduled events of instances."""

    enabled: Flag = Field(
        default=False,
        description="Whether it is asked; it needs the extra `aws` and the right to describe instances, see "
        "docs/aws.md.",
    )
    every: Duration = Field(
        default=timedelta(minutes=5),
        description="How often it is asked: one list for each region. At least 1m.",
    )

    @model_validator(mode="after")
    def _not_too_often(self) -> AwsSource:
        if self.every < _OFTEN:
            raise Mistakes((Mistake(("every",), "is shorter than 1m: EC2 counts calls, too"),))
        return self


class Sources(Section):
    """Who tells of maintenance."""

    node_conditions: NodeConditionsSource = Field(
        default=NodeConditionsSource(), description="Node conditions, such as `VMEventScheduled`."
    )
    imds: ImdsSource = Field(
        default=ImdsSource(), description="Scheduled events, as the node agent published them."
    )
    requests: RequestsSource = Field(default=RequestsSource(), description="Requests in a node's annotation.")
    arm: ArmSource = Field(
        default=ArmSource(), description="Azure Resource Manager: reboots planned weeks ahead."
    )
    aws: AwsSource = Field(default=AwsSource(), description="AWS's EC2 API: scheduled events.")


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


class TimesSection(Section):
    """When, for windows and for what is not allowed."""

    days: Days | None = Field(
        default=None,
        description="The days on which it starts, as names or ranges: `[Mon-Thu, sat]`. Default: every day.",
    )
    start: TimeOrMoment | None = Field(
        default=None, description="A time of day, or a moment (a date, or date and time). Default: 00:00."
    )
    end: TimeOrMoment | None = Field(
        default=None,
        description="A time of day up to 24:00 (earlier than the start: on the next day), or a moment, where "
        "a date excludes that day. Itself outside. Default: 24:00.",
    )
    schedule: str | None = Field(
        default=None,
        description="Instead of days, start and end: a cron schedule of five fields; Sunday is 0 or 7, the "
        "first Saturday of a month `6#1`; also @daily and its like. Default: none.",
    )
    duration: Duration | None = Field(
        default=None, description="With a schedule: how long it lasts from each firing on. Default: none."
    )
    node_selector: Selector = Field(default=EVERYTHING, description="Which nodes it is for. Default: all.")
    time_zone: Zone | None = Field(
        default=None, description="The IANA time zone in which it is meant. Default: the file's `timeZone`."
    )

    def title(self, zone: ZoneInfo) -> str:
        """Return its times in words: the name of what was given none."""
        return str(times_of(self, self.time_zone or zone))


class WindowSettings(TimesSection):
    """When drains may start."""

    name: Text | None = Field(
        default=None,
        description="What reports call it; no two windows share one. Default: its times in words.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> WindowSettings:
        if found := mistakes_in(self, may_be_always=True):
            raise Mistakes(tuple(found))
        return self


class NotAllowedSettings(TimesSection):
    """When drains may not start."""

    name: Text | None = Field(
        default=None,
        description="What reports call it; no two entries share one. Default: its times in words.",
    )
    reason: str = Field(default="", description="Why, for whoever reads the report. Default: none.")
    absolute: Flag = Field(
        default=False, description="Whether not even a deadline may beat it. Default: false, a deadline does."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> NotAllowedSettings:
        if found := mistakes_in(self, may_be_always=False):
            raise Mistakes(tuple(found))
        return self


class Ignore(Section):
    """Nodes that hold no place in the budget."""

    not_ready_for: Duration = Field(
        default=timedelta(minutes=30),
        description="A node NotReady for longer holds no place: nobody waits for it, and it would block "
        "the budget until somebody deletes it.",
    )
    quarantined: Flag = Field(
        default=True, description="Whether nodes set aside (by a taint of quarantine) hold no place."
    )


class Budget(Section):
    """Nodes out of service at once, whoever took them: cordoned, NotReady, or drained by us."""

    max_unavailable: Share = Field(
        default=Limit(10, percent=True),
        description="Of all nodes looked after: a number, or a percentage, rounded up so that a small "
        "cluster gets one.",
    )
    per_zone: Share | None = Field(
        default=None, description="The same for each zone by itself. Default: no limit."
    )
    per_pool: Share | None = Field(
        default=None, description="The same for each node pool by itself. Default: no limit."
    )
    spacing: Duration = Field(default=timedelta(), description="The least time between two starts.")
    exempt: tuple[Kind, ...] = Field(
        default=(Kind.PREEMPT, Kind.TERMINATE),
        description="Kinds that never wait for a place, since the VM is lost anyway; they are counted.",
    )
    ignore: Ignore = Field(default=Ignore(), description="Nodes that hold no place.")


class PodSelector(Section):
    """Some pods."""

    namespaces: tuple[Text, ...] = Field(
        default=(), description="The namespaces' names. Default: all of them."
    )
    selector: Selector = Field(default=EVERYTHING, description="The pods' labels. Default: all pods.")


def _namespaces(value: object) -> tuple[str, ...] | LabelSelector:
    if isinstance(value, list | tuple):
        return tuple(_text(name) for name in value)
    return parse_selector(value)


Namespaces = Annotated[
    tuple[str, ...] | LabelSelector,
    PlainValidator(_namespaces),
    WithJsonSchema({"anyOf": [{"type": "array", "items": _TEXT}, _SELECTOR_SCHEMA]}),
]


class DrainRule(Section):
    """What a drain does with some pods, and in which order."""

    name: Text = Field(description="What reports call it. No default: every rule has one.")
    pods: Selector = Field(default=EVERYTHING, description="The pods' labels. Default: all pods.")
    namespaces: Namespaces = Field(
        default=EVERYTHING, description="The namespaces, by a list of names or by their labels. Default: all."
    )
    behavior: Behavior = Field(
        default=Behavior.DRAIN,
        description="Drain: the pod is evicted in the rule's order. Skip: it stays. WaitCompleted: it is "
        "left to finish, and waited for.",
    )
    order: Whole = Field(
        default=0,
        description="Lower goes first; a drain goes on to the next only when all of one order have gone.",
    )


class Escalation(Section):
    """What happens when a drain doesn't finish; each stage is off unless it is set."""

    warn_after: Duration | None = Field(
        default=None, description="After so long, what blocks is named loudly. Default: never."
    )
    delete_before_deadline: Flag = Field(
        default=False,
        description="Whether pods are deleted, which asks no PodDisruptionBudget, once only their grace "
        "period is left before the platform's own time. Default: false: a budget is somebody's word.",
    )
    force_delete_stuck_after: Duration | None = Field(
        default=None,
        description="Pods that have been terminating for so long on an unreachable node are deleted without "
        "grace. Default: never: two pods of one StatefulSet may then run at once.",
    )


class Drain(Section):
    """How nodes are emptied."""

    timeout: Duration = Field(
        default=timedelta(minutes=30),
        description="For one node; what blocks is then named, and tried again by the next pass.",
    )
    max_concurrent_nodes: Count = Field(default=10, description="How many nodes are drained at once.")
    ignore_daemon_sets: Flag = Field(
        default=True,
        description="Whether DaemonSets' pods stay: their controller would put them back at once.",
    )
    max_grace_period: Duration | None = Field(
        default=None, description="Caps the pods' own grace periods. Default: no cap."
    )
    skip_pods: tuple[PodSelector, ...] | None = Field(
        default=None, description="Pods that stay, as a list of selectors. Default: none."
    )
    rules: tuple[DrainRule, ...] = Field(
        default=(),
        description="What is done with which pods, in which order; the first rule that fits counts.",
    )
    escalation: Escalation | None = Field(
        default=None,
        description="What happens when a drain doesn't finish. Default: nothing but to try again.",
    )
    restart_singletons: Flag = Field(
        default=False,
        description="Whether a Deployment of one replica that a budget protects is restarted, so that its "
        "new pod comes up elsewhere first. Default: false; it changes what somebody deployed.",
    )
    parallel_per_node: Count = Field(
        default=20,
        description="Eviction requests under way at once for one node. As much as one watch keeps up with.",
    )
    parallel: Count = Field(
        default=50,
        description="Eviction requests under way at once for all nodes: a small part of what an API server "
        "admits (200 changes at once).",
    )


class Uncordon(Section):
    """When a node comes back."""

    settle: Duration = Field(
        default=timedelta(minutes=2),
        description="The event gone and the node Ready, both for so long: platforms repeat themselves.",
    )


class PoolCount(StrEnum):
    """How an AKS agent pool gets back the machine that was deleted from it."""

    RESTORE = "Restore"
    TRUST_AUTOSCALER = "TrustAutoscaler"


class AksPools(Section):
    """AKS's agent pools, whose machines are deleted through ARM and in no other way."""

    cluster: ClusterId | None = Field(
        default=None,
        description="The resource id of the managed cluster, "
        "`/subscriptions/…/resourceGroups/…/providers/Microsoft.ContainerService/managedClusters/…`. "
        "Default: none, and no machine of an agent pool is replaced.",
    )
    count: PoolCount = Field(
        default=PoolCount.RESTORE,
        description="Restore: the pool is asked for one machine more before one is deleted. TrustAutoscaler: "
        "it is left to the cluster autoscaler, as it always is in a pool that has one.",
    )


class Replacing(Section):
    """How machines are replaced, for the events that say `replace: true`."""

    surge: Flag = Field(
        default=False,
        description="Whether the replacement is asked for, and Ready, before the old node is drained, where "
        "its MachineSet or agent pool allows it and the deadline leaves the time.",
    )
    aks: AksPools = Field(default=AksPools(), description="AKS's agent pools.")


class Adoptable(StrEnum):
    """Tools whose cordons can become ours."""

    MECHANIC = "mechanic"


class Sign(StrEnum):
    """What of a node's case is shown to others."""

    DRAINSAFE = "drainsafe"
    """drainsafe's annotations."""

    NODE_CONDITIONS = "node-conditions"
    """The lifecycle conditions of KEP-5683."""

    NODE_MAINTENANCES = "nodemaintenances"
    """A NodeMaintenance object per node and event."""


class AksRemediator(StrEnum):
    """How AKS's own remediator is lived with."""

    SHARE = "Share"
    LEAVE = "Leave"


class Karpenter(Section):
    """How Karpenter (AKS: node auto-provisioning) is lived with."""

    leave: tuple[Kind, ...] = Field(
        default=(Kind.PREEMPT,), description="Kinds of events on its nodes that are left to it."
    )


class Coexist(Section):
    """How others who drain nodes are lived with."""

    aks_remediator: AksRemediator = Field(
        default=AksRemediator.SHARE,
        description="Share: drain too, never touch its taint, uncordon after it has gone. Leave: hold the "
        "nodes that it has tainted.",
    )
    karpenter: Karpenter = Field(default=Karpenter(), description="Karpenter, on AKS node auto-provisioning.")


class Keys(Section):
    """What our labels and annotations are called."""

    prefix: Prefix = Field(
        default="node-maintenance.dev",
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
        return self.in_fleet(labels) and labels.get(f"{self.keys.prefix}/ignore") != "true"

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
