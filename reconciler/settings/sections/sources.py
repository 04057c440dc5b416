"""`sources`: where the reconciler learns of maintenance."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum

from msgspec import Struct
from pydantic import Field, model_validator

from reconciler.model import limits
from reconciler.model.event import Kind, WaitForNotice
from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.sections.fields import Duration, Flag, Text
from reconciler.settings.sections.notify import LINK_LOCAL, SecretText
from reconciler.settings.sections.section import Section


class NodeConditionsSource(Section):
    """Node conditions, such as node-problem-detector's `VMEventScheduled`."""

    enabled: Flag = Field(default=True, description="Whether the reconciler reads node conditions.")
    stale_after: Duration = Field(
        default=timedelta(minutes=15),
        description="A condition without a heartbeat for this long is unknown. So is one that reports no "
        "event with a heartbeat that is further in the future. The default is three of the five-minute "
        "heartbeats that node-problem-detector sends.",
    )


class ImdsSource(Section):
    """Scheduled events of the Azure Instance Metadata Service (IMDS)."""

    enabled: Flag = Field(
        default=True,
        description="Whether the reconciler reads the events that the node agent publishes on its node.",
    )


class RequestsSource(Section):
    """Requests by a person or by other automation."""

    enabled: Flag = Field(
        default=True,
        description="Whether the reconciler reads the annotation `<keys.prefix>/request` of nodes.",
    )


class AzureCloud(StrEnum):
    """The Azure clouds."""

    PUBLIC = "Public"
    CHINA = "China"
    US_GOVERNMENT = "USGovernment"


# Azure limits calls per minute, and a pass runs about once a minute.
_OFTEN = timedelta(minutes=1)


class ArmSource(Section):
    """Azure Resource Manager (ARM): reboots that Azure plans weeks ahead."""

    enabled: Flag = Field(
        default=False,
        description="Whether the reconciler queries ARM for nodes on Azure. It needs an identity that may "
        "read VMs, see docs/azure.md.",
    )
    every: Duration = Field(
        default=timedelta(minutes=15),
        description="How often the reconciler queries ARM, at least 1m. Each query is one list per uniform "
        "scale set, and one list for all other VMs of a subscription. A VM whose maintenance is not in that "
        "list is queried alone. A ConfigMap saves the answers, but not "
        "in mode Observe and in dry runs: there, each run queries ARM.",
    )
    cloud: AzureCloud = Field(default=AzureCloud.PUBLIC, description="The Azure cloud of the subscription.")
    ahead: Duration | None = Field(
        default=None,
        description="The earliest start of a drain for planned maintenance, as the time before Azure's own "
        "maintenance window. It is never less than the `leadTime` of the kind. If windows or freezes end "
        "before the deadline, it is earlier by as much. Default: `events.Redeploy.ahead` before the latest "
        "start.",
    )
    wait_for_notice: WaitForNotice = Field(
        default=WaitForNotice.AUTO,
        description="What a plan that names days, but no moment, does. Azure comes at some time in these "
        "days, and gives notice minutes before. Auto: the plan starts no drain on a node that has a source "
        "of that notice (the node agent, or the condition `VMEventScheduled`); on other nodes it is dated "
        "at the beginning of its window. Always: it starts no drain. Never: it is dated everywhere.",
    )
    self_service: Flag = Field(
        default=False,
        description="Whether the reconciler starts self-service maintenance that Azure offers, on a drained "
        "node inside one of the `windows`. Read docs/azure.md#7-self-service-maintenance first: it says what "
        "AKS supports.",
    )

    @model_validator(mode="after")
    def _not_too_often(self) -> ArmSource:
        found = []
        if self.every < _OFTEN:
            found.append(Mistake(("every",), "is shorter than 1m; ARM limits calls per minute"))
        if self.self_service and not self.enabled:
            found.append(Mistake(("selfService",), "has no effect while sources.arm.enabled is false"))
        if found:
            raise Mistakes(tuple(found))
        return self


class AwsSource(Section):
    """The EC2 API of AWS: scheduled events of instances."""

    enabled: Flag = Field(
        default=False,
        description="Whether the reconciler queries EC2. It needs the extra `aws` and permission to describe "
        "instances, see docs/aws.md.",
    )
    every: Duration = Field(
        default=timedelta(minutes=5),
        description="How often the reconciler queries EC2, at least 1m. Each query is one list per region.",
    )
    ahead: Duration | None = Field(
        default=None,
        description="The earliest start of a drain, as the time before the start of the event. It is never "
        "less than the `leadTime` of the kind. If windows or freezes end before the deadline, it is earlier "
        "by as much. A drain from a host that fails does not wait for it. Default: `events.<Kind>.ahead` "
        "before the latest start.",
    )

    @model_validator(mode="after")
    def _not_too_often(self) -> AwsSource:
        if self.every < _OFTEN:
            raise Mistakes((Mistake(("every",), "is shorter than 1m; EC2 limits the rate of calls"),))
        return self


AZ = "$AZ"
"""In the address of a vCenter: the last character of the zone of a node."""

# A vCenter lists all its hosts in each query.
_OFTEN_VCENTER = timedelta(seconds=10)

_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|(?:\$AZ|[A-Za-z0-9._-]){1,253})(?::[0-9]{1,5})?/?",
    re.ASCII,
)


class VCenter(Section):
    """One vCenter server."""

    url: Text = Field(
        description="The address of the vCenter, such as `https://vc.example.com`. Required. `http` is "
        "allowed for this machine only. `$AZ` in the name of the server is the last character of the zone of "
        "a node, such as `a` of `eu-de-1a`: one entry is then the vCenters of all zones.",
    )
    zone: Text | None = Field(
        default=None,
        description="The zone of the nodes whose hosts it manages, or the last character of the zone, as in "
        "the file of maintenance-controller. An entry with the whole zone comes first. Default: all zones "
        "that no other entry names.",
    )
    username: SecretText = Field(description="The user, who only needs to read. Required.")
    password: SecretText = Field(description="The password of the user. Required.")
    ca_file: Text | None = Field(
        default=None,
        description="The file with the certificate authority of the vCenter. Default: those of the system.",
    )
    insecure: Flag = Field(
        default=False,
        description="Whether the certificate of the vCenter is not verified. Whoever is on the way to it can "
        "then read the password, and report maintenance. `caFile` is better.",
    )

    @model_validator(mode="after")
    def _guarded_address(self) -> VCenter:
        found = _ADDRESS.fullmatch(self.url)
        why = ""
        if found is None:
            why = "is not the address of a server; write it like https://vc.example.com"
        elif AZ in found["host"] and not any(map(str.isalpha, found["host"].replace(AZ, ""))):
            why = f"has {AZ} in an address of numbers; it may only be in a name"
        elif found["host"].startswith(LINK_LOCAL):
            why = "is a link-local address, where clouds serve credentials"
        elif found["scheme"] != "https" and found["host"] not in ("127.0.0.1", "localhost"):
            why = "would send the password unencrypted; write https://"
        mistakes = [Mistake(("url",), why)] if why else []
        if self.insecure and self.ca_file is not None:
            mistakes.append(Mistake(("insecure",), "leaves caFile without an effect; remove one of them"))
        if mistakes:
            raise Mistakes(tuple(mistakes))
        return self


class VCenters(Struct, frozen=True):
    """What the source asks of vCenter servers; `enabled` only if the settings name some."""

    enabled: bool
    every: timedelta
    servers: tuple[VCenter, ...]
    alarms: tuple[str, ...]


class EsxSource(Section):
    """Maintenance of the ESX host under a node."""

    enabled: Flag = Field(
        default=False,
        description="Whether the reconciler reads whether the ESX host of a node is in maintenance: in the "
        "label `cloud.sap/esx-in-maintenance`, which the ESX controller of maintenance-controller writes, or "
        "at `vcenters`. See docs/esx.md.",
    )
    vcenters: tuple[VCenter, ...] = Field(
        default=(),
        max_length=limits.ENTRIES,
        description="The vCenter servers to query, instead of the label. It needs the extra `esx`. Default: "
        "none.",
    )
    every: Duration = Field(
        default=timedelta(minutes=5),
        description="How often the reconciler queries each vCenter, at least 10s. A query is a login and one "
        "list of all hosts. After a query that failed, the next one is at least a minute later, because "
        "vCenter locks a user after a few wrong passwords.",
    )
    alarms: tuple[Text, ...] = Field(
        default=(),
        max_length=limits.ENTRIES,
        description="The names of the alarms in vCenter that count, such as `Host memory usage`. With the "
        "label, the ESX controller decides that. Default: none.",
    )
    maintenance: Kind = Field(
        default=Kind.REBOOT,
        description="The kind of the event while the host is in maintenance (`true`). `events` decides what "
        "it means.",
    )
    alarm: Kind = Field(
        default=Kind.REDEPLOY,
        description="The kind of the event while the host has an alarm (`alarm`). `Preempt` drains at once, "
        "outside of windows and budgets too.",
    )

    @model_validator(mode="after")
    def _known_kinds(self) -> EsxSource:
        chosen = {"maintenance": self.maintenance, "alarm": self.alarm}
        found = [
            Mistake((key,), f"is {kind}, which is not maintenance of a host; write Reboot or Redeploy")
            for key, kind in chosen.items()
            if kind in (Kind.UNKNOWN, Kind.REBALANCE)
        ]
        if self.every < _OFTEN_VCENTER:
            found.append(Mistake(("every",), "is shorter than 10s; each query lists all hosts"))
        if found:
            raise Mistakes(tuple(found))
        return self

    @property
    def polled(self) -> VCenters:
        """What is asked of vCenter servers."""
        return VCenters(self.enabled and bool(self.vcenters), self.every, self.vcenters, self.alarms)


class KubernikusSource(Section):
    """Nodes of Kubernikus whose kubelet has another version than the control plane."""

    enabled: Flag = Field(
        default=False,
        description="Whether a node gets an event of the kind `Redeploy` while its kubelet has another "
        "version than the API server. See docs/esx.md#kubernikus.",
    )


class Sources(Section):
    """Where the reconciler learns of maintenance."""

    node_conditions: NodeConditionsSource = Field(
        default=NodeConditionsSource(), description="Node conditions, such as `VMEventScheduled`."
    )
    imds: ImdsSource = Field(
        default=ImdsSource(), description="Azure scheduled events, published by the node agent."
    )
    requests: RequestsSource = Field(
        default=RequestsSource(), description="Maintenance requests in an annotation of the node."
    )
    arm: ArmSource = Field(
        default=ArmSource(),
        description="Azure Resource Manager (ARM): reboots planned weeks ahead. Setup: docs/azure.md.",
    )
    aws: AwsSource = Field(
        default=AwsSource(), description="The EC2 API of AWS: scheduled events. Setup: docs/aws.md."
    )
    esx: EsxSource = Field(
        default=EsxSource(),
        description="Maintenance and alarms of ESX hosts, from a label of the node. See docs/esx.md.",
    )
    kubernikus: KubernikusSource = Field(
        default=KubernikusSource(),
        description="Kubelets that have another version than the control plane. See docs/esx.md#kubernikus.",
    )
