"""The configurations of the check types that workflows use, one class per type.

Keys are those of maintenance-controller where it has the type. Each type has its page in docs/workflows.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from zoneinfo import ZoneInfo

from pydantic import ConfigDict, Field, model_validator

from reconciler.calendar.values import Limit
from reconciler.features.workflows.services import Value
from reconciler.features.workflows.value_expression import parse_value_expression
from reconciler.model import limits
from reconciler.model.event import Kind
from reconciler.model.steps import HeldStep
from reconciler.settings.fields import Share, Zone, fields_of
from reconciler.settings.loose import (
    ClockTime,
    Dates,
    GoDuration,
    LongText,
    LooseCount,
    LooseDays,
    LooseFlag,
    LooseSection,
    LooseText,
    LooseTexts,
    NoneOrDays,
    ObjectName,
    RequiredText,
    StatusText,
    Url,
    parse_required,
    parse_url,
)
from reconciler.settings.mistakes import Mistake, Mistakes

_PARALLEL = 100
_LEASE_NAME = 240


class CheckConfig(LooseSection):
    """The `config` of one check."""

    # maintenance-controller ignores other keys. But a misspelt one is a limit that nobody checks.
    model_config = ConfigDict(extra="forbid")

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        """The keys whose values let the check answer only `unknown`, each with what is wrong."""
        return ()


class LabelCheck(CheckConfig):
    """`hasLabel` and `anyLabel`: a label of this node, or of any node."""

    key: RequiredText = Field(description="The key of the label.")
    value: LooseText = Field(
        default="", description="The value that the label must have. Default: none; any value passes."
    )


class AnnotationCheck(CheckConfig):
    """`hasAnnotation`: an annotation of this node."""

    key: RequiredText = Field(description="The key of the annotation.")
    value: LooseText = Field(
        default="", description="The value that the annotation must have. Default: none; any value passes."
    )


class ConditionCheck(CheckConfig):
    """`condition`: a condition of this node."""

    type: RequiredText = Field(description="The type of the condition, such as `Ready`.")
    status: StatusText = Field(description="The status that it must have: `True`, `False` or `Unknown`.")


class HypervisorCheck(CheckConfig):
    """`checkHypervisor`: fields in the status of the Hypervisor of this node."""

    aggregates: LooseTexts | None = Field(default=None, description="The names of the aggregates, in order.")
    evicted: LooseFlag | None = Field(
        default=None, description="Whether no instance is left while the Hypervisor is in maintenance."
    )
    hypervisor_id: LooseText | None = Field(
        default=None, description="The ID of the hypervisor in OpenStack."
    )
    hypervisor_version: LooseText | None = Field(default=None, description="The version of the hypervisor.")
    internal_ip: LooseText | None = Field(default=None, description="The internal IP address.")
    lib_virt_version: LooseText | None = Field(default=None, description="The version of libvirt.")
    num_instances: LooseCount | None = Field(default=None, description="The number of instances.")
    service_id: LooseText | None = Field(
        default=None, description="The ID of the compute service in OpenStack."
    )
    spec_hash: LooseText | None = Field(default=None, description="The hash of the spec.")
    traits: LooseTexts | None = Field(default=None, description="The traits, in order.")

    @model_validator(mode="after")
    def _has_a_field(self) -> HypervisorCheck:
        if not self.fields:
            raise ValueError("names no field of the status, such as evicted")
        return self

    @property
    def fields(self) -> Mapping[str, Value]:
        """The fields that are compared, with the value that each must have."""
        return fields_of(self)


class HypervisorConditionCheck(CheckConfig):
    """`hypervisorCondition`: a condition of the Hypervisor of this node."""

    type: RequiredText = Field(description="The type of the condition, such as `Ready`.")
    status: StatusText = Field(description="The status that it must have: `True`, `False` or `Unknown`.")


class CloudProviderSecret(CheckConfig):
    """A Secret. maintenance-controller uses it only with both keys."""

    name: LooseText = Field(default="", description="The name of the Secret.")
    namespace: LooseText = Field(default="", description="Its namespace.")


class KubernikusCountCheck(CheckConfig):
    """`kubernikusCount`: whether the cluster has the nodes that Kubernikus should have made."""

    cluster: RequiredText = Field(description="The name of the cluster in Kubernikus.")
    cloud_provider_secret: CloudProviderSecret = Field(
        default_factory=CloudProviderSecret,
        description="The Secret whose key `cloudprovider.conf` has the credentials of OpenStack. Default: "
        "none; the file `credentialsFile` has them.",
    )
    credentials_file: RequiredText = Field(
        default="provider/cloudprovider.conf",
        description="The file with the credentials, if there is no Secret. It is relative to the working "
        "directory.",
    )
    url: Url | None = Field(
        default=None,
        description="The URL of Kubernikus. Default: `https://kubernikus.REGION.cloud.sap`, with the region "
        "of the credentials.",
    )


class NodeCountCheck(CheckConfig):
    """`nodeCount`: how many nodes the cluster has."""

    count: LooseCount = Field(description="The number of nodes that the cluster needs at least.")


class ClusterSemverCheck(CheckConfig):
    """`clusterSemver`: whether another node has a newer version."""

    key: RequiredText = Field(description="The label with the version, such as `1.34.7`.")
    profile_scoped: LooseFlag = Field(
        default=False, description="Whether only the nodes with the same profile are compared."
    )


class MaxMaintenanceCheck(CheckConfig):
    """`maxMaintenance`: how many nodes are in maintenance."""

    max: LooseCount = Field(description="The check passes while fewer nodes than this are in maintenance.")
    profile: LooseText = Field(
        default="", description="Counts only nodes that have this profile. Default: none; all nodes count."
    )
    group_by: LooseTexts = Field(
        default=(),
        description="Counts only nodes whose labels of these keys have the same values as this node. A label "
        "that this node does not have, or that is empty, is not compared. Default: none.",
    )
    group_label: LooseText = Field(
        default="", description="One more key for `groupBy`. Deprecated: use `groupBy`. Default: none."
    )
    skip_after: GoDuration = Field(
        default=timedelta(),
        description="Stops counting a node whose last transition is longer ago. `0s` counts it for good.",
    )

    @property
    def labels(self) -> tuple[str, ...]:
        """The keys of the labels that make a group, each once."""
        keys = (*self.group_by, self.group_label) if self.group_label else self.group_by
        return tuple(dict.fromkeys(keys))


class StaggerCheck(CheckConfig):
    """`stagger`: how much time passes between two nodes."""

    duration: GoDuration = Field(description="The time after which the next node may pass.")
    lease_name: ObjectName = Field(description="The first part of the names of the Leases.")
    lease_namespace: ObjectName = Field(description="The namespace of the Leases. It must exist.")
    parallel: LooseCount = Field(
        default=1, description="How many nodes may pass in that time: the number of Leases."
    )

    @model_validator(mode="after")
    def _is_possible(self) -> StaggerCheck:
        found = []
        if not 1 <= self.parallel <= _PARALLEL:
            found.append(Mistake(("parallel",), f"is {self.parallel}; write a number from 1 to {_PARALLEL}"))
        if len(self.lease_name) > _LEASE_NAME:
            found.append(Mistake(("leaseName",), f"is longer than {_LEASE_NAME} characters"))
        if found:
            raise Mistakes(tuple(found))
        return self

    @property
    def leases(self) -> tuple[tuple[str, str], ...]:
        """The namespace and name of each Lease."""
        return tuple((self.lease_namespace, f"{self.lease_name}-{index}") for index in range(self.parallel))


class TimeWindowCheck(CheckConfig):
    """`timeWindow`: a weekly window. It belongs to the day on which it starts."""

    start: ClockTime = Field(description="The time of day at which it starts, with or without seconds.")
    end: ClockTime = Field(
        description='The time of day at which it ends, up to "24:00". A time before the start is on the next '
        "day."
    )
    weekdays: LooseDays = Field(description="The days on which it starts.")
    exclude: Dates = Field(
        default=(),
        description="Days on which it does not start, and at whose midnight it ends: `Dec 24` in every year, "
        "or `2026-12-24`. Default: none.",
    )
    time_zone: Zone = Field(default=ZoneInfo("UTC"), description="The IANA time zone of its days and times.")


class WaitCheck(CheckConfig):
    """`wait`: the time since the last transition of the profile."""

    duration: GoDuration = Field(description="The check passes when the last transition is longer ago.")


class WaitExcludeCheck(CheckConfig):
    """`waitExclude`: the time since the last transition, without some weekdays."""

    duration: GoDuration = Field(description="The check passes when more time than this has passed.")
    exclude: NoneOrDays = Field(
        default=frozenset(), description="The weekdays on which no time passes. Default: none."
    )
    time_zone: Zone = Field(default=ZoneInfo("UTC"), description="The IANA time zone of the weekdays.")


class AffinityCheck(CheckConfig):
    """`affinity`: nodes without pods that prefer operational nodes go first."""

    min_operational: LooseCount = Field(
        default=0,
        description="The check passes anyway while so many nodes with the profile are operational. `0` "
        "switches this off.",
    )


class PrometheusInstantCheck(CheckConfig):
    """`prometheusInstant`: the value of a Prometheus query.

    maintenance-controller reads any text here, and the check fails when it is asked.
    """

    url: RequiredText = Field(description="The URL of Prometheus, without `/api/v1/query`.")
    query: LongText = Field(default="", description="A query that returns one sample.")
    expr: LooseText = Field(
        default="",
        description="What the `value` of the sample must be, such as `value <= 1`. It may use numbers, "
        "brackets, `+ - * / % **`, comparisons, `&& || !` and `a ? b : c`.",
    )

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        """The keys that the check can't work with, each with what is wrong."""
        query = partial(parse_required, most=limits.MESSAGE)
        found = []
        for key, parse in (("url", parse_url), ("query", query), ("expr", parse_value_expression)):
            try:
                parse(getattr(self, key))
            except ValueError as error:
                found.append((key, str(error)))
        return tuple(found)


class ScheduledEventCheck(CheckConfig):
    """`scheduledEvent`: whether the platform reports maintenance of this node."""

    kinds: tuple[Kind, ...] = Field(default=(), description="The kinds that count. Default: all kinds.")
    drains: LooseFlag = Field(
        default=True, description="Whether only events count that require a drain by the settings."
    )


class KeylessCheck(CheckConfig):
    """`approved`, `budget`, `notAllowed` and `window`: they have no keys."""


class DeadlineCheck(CheckConfig):
    """`deadline`: whether an event of this node can't wait any longer."""

    within: GoDuration = Field(
        default=timedelta(), description="How long before the deadline the check begins to pass."
    )


class HooksDoneCheck(CheckConfig):
    """`hooksDone`: whether the hooks of this node are done."""

    step: HeldStep = Field(
        default=HeldStep.PRE_DRAIN, description="The step that the hooks hold, as their annotations name it."
    )
    timeout: GoDuration = Field(
        default=timedelta(minutes=10),
        description="How long hooks may hold, counted from the moment at which the state was entered.",
    )


class PrometheusAlerts(CheckConfig):
    """Alerts of Prometheus that block."""

    url: Url = Field(description="The URL of Prometheus, without `/api/v1/query`.")
    ignore: LooseTexts = Field(
        default=("Watchdog",),
        description="The names of alerts that don't count. `Watchdog` fires at all times by design.",
    )


class ClusterHealthyCheck(CheckConfig):
    """`clusterHealthy`: whether the cluster is well enough to lose one more node."""

    max_not_ready: Share = Field(
        default=Limit(10, percent=True),
        description="How many nodes may be NotReady, as a number or a percentage, rounded up. Nodes that are "
        "cordoned or in maintenance are left out.",
    )
    max_pending: LooseCount | None = Field(
        default=None, description="How many pods may be Pending for longer than `pendingFor`. Default: any."
    )
    pending_for: GoDuration = Field(
        default=timedelta(minutes=5), description="How long a pod may be Pending before it counts."
    )
    namespaces: LooseTexts = Field(
        default=(),
        description="The namespaces whose Pending pods count. Whoever may create pods there can make the "
        "check fail. Default: all namespaces.",
    )
    alerts: PrometheusAlerts | None = Field(
        default=None, description="Fails while an alert of this Prometheus fires. Default: not checked."
    )


CHECK_CONFIGS: Mapping[str, type[CheckConfig]] = MappingProxyType(
    {
        "affinity": AffinityCheck,
        "anyLabel": LabelCheck,
        "approved": KeylessCheck,
        "budget": KeylessCheck,
        "checkHypervisor": HypervisorCheck,
        "clusterHealthy": ClusterHealthyCheck,
        "clusterSemver": ClusterSemverCheck,
        "condition": ConditionCheck,
        "deadline": DeadlineCheck,
        "hasAnnotation": AnnotationCheck,
        "hasLabel": LabelCheck,
        "hooksDone": HooksDoneCheck,
        "hypervisorCondition": HypervisorConditionCheck,
        "kubernikusCount": KubernikusCountCheck,
        "maxMaintenance": MaxMaintenanceCheck,
        "nodeCount": NodeCountCheck,
        "notAllowed": KeylessCheck,
        "prometheusInstant": PrometheusInstantCheck,
        "scheduledEvent": ScheduledEventCheck,
        "stagger": StaggerCheck,
        "timeWindow": TimeWindowCheck,
        "wait": WaitCheck,
        "waitExclude": WaitExcludeCheck,
        "window": KeylessCheck,
    }
)
"""The section of each check type's configuration, by the name of the type."""
