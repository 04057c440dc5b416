"""`sources`: where the reconciler learns of maintenance."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum

from msgspec import Struct
from pydantic import Field, model_validator

from reconciler.model import limits
from reconciler.model.event import Kind, WaitForNotice
from reconciler.settings.fields import LINK_LOCAL, Duration, Flag, SecretText, Section, Text
from reconciler.settings.mistakes import Mistake, Mistakes


class NodeConditionsSource(Section):
    """Node conditions, such as node-problem-detector's `VMEventScheduled`."""

    enabled: Flag = Field(default=True, description="Whether they are read.")
    stale_after: Duration = Field(
        default=timedelta(minutes=15),
        description="A condition without a heartbeat for this long is unknown, as is one without an event "
        "and with a heartbeat this far in the future.",
    )


class ImdsSource(Section):
    """Scheduled events of the Azure Instance Metadata Service (IMDS)."""

    enabled: Flag = Field(
        default=True,
        description="Whether they are read.",
    )


class RequestsSource(Section):
    """Requests by a person or by other automation."""

    enabled: Flag = Field(
        default=True,
        description="Whether `<keys.prefix>/request` is read.",
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
        description="Whether it is queried, with an identity that may read VMs.",
    )
    every: Duration = Field(
        default=timedelta(minutes=15),
        description="How often, at least 1m.",
    )
    cloud: AzureCloud = Field(default=AzureCloud.PUBLIC, description="The Azure cloud of the subscription.")
    ahead: Duration | None = Field(
        default=None,
        description="The earliest start of a drain before Azure's window; at least the `leadTime`, and "
        "more if windows or freezes end before the deadline. Default: `events.Redeploy.ahead` "
        "before the latest start.",
    )
    wait_for_notice: WaitForNotice = Field(
        default=WaitForNotice.AUTO,
        description="What a plan without a moment does. Auto: no drain where a source gives notice (the "
        "agent, or `VMEventScheduled`), else it is dated at the beginning of its window. "
        "Always: no drain. Never: dated everywhere.",
    )
    self_service: Flag = Field(
        default=False,
        description="Whether self-service maintenance is started, on a drained node inside `windows`. Read "
        "docs/azure.md#7-self-service-maintenance first.",
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
        description="Whether it is queried, with the extra `aws` and permission to describe instances.",
    )
    every: Duration = Field(
        default=timedelta(minutes=5),
        description="How often, at least 1m; one list per region.",
    )
    ahead: Duration | None = Field(
        default=None,
        description="As `sources.arm.ahead`, except for a host that fails. Default: `events.<Kind>.ahead` "
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
        description="Its address, such as `https://vc.example.com` (`http` for this machine only). `$AZ` "
        "is the last character of a node's zone, such as `a` of `eu-de-1a`.",
    )
    zone: Text | None = Field(
        default=None,
        description="The zone of its nodes, which comes first, or its last character. Default: all that no "
        "other entry names.",
    )
    username: SecretText = Field(description="The user, who only reads.")
    password: SecretText = Field(description="The user's password.")
    ca_file: Text | None = Field(
        default=None,
        description="Its certificate authority. Default: those of the system.",
    )
    insecure: Flag = Field(
        default=False,
        description="Whether its certificate is not verified, so that others can read the password.",
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
        description="Whether they are read: from the label `cloud.sap/esx-in-maintenance` of "
        "maintenance-controller's ESX controller, or at `vcenters`.",
    )
    vcenters: tuple[VCenter, ...] = Field(
        default=(),
        max_length=limits.ENTRIES,
        description="The vCenter servers to query, instead of the label. They need the extra `esx`. Default: "
        "none.",
    )
    every: Duration = Field(
        default=timedelta(minutes=5),
        description="How often, at least 10s; after a failure 1m.",
    )
    alarms: tuple[Text, ...] = Field(
        default=(),
        max_length=limits.ENTRIES,
        description="The alarms that count, such as `Host memory usage`. Default: none.",
    )
    maintenance: Kind = Field(
        default=Kind.REBOOT,
        description="The kind of the event while the host is in maintenance.",
    )
    alarm: Kind = Field(
        default=Kind.REDEPLOY,
        description="The same while it has an alarm. `Preempt` drains outside of windows and budgets.",
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
        description="Whether such a node gets an event of the kind `Redeploy`.",
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
        default=RequestsSource(), description="Requests in an annotation of the node."
    )
    arm: ArmSource = Field(
        default=ArmSource(),
        description="Azure Resource Manager: reboots planned weeks ahead. See docs/azure.md.",
    )
    aws: AwsSource = Field(default=AwsSource(), description="Scheduled events of EC2. See docs/aws.md.")
    esx: EsxSource = Field(
        default=EsxSource(),
        description="Maintenance and alarms of ESX hosts. See docs/esx.md.",
    )
    kubernikus: KubernikusSource = Field(
        default=KubernikusSource(),
        description="Kubelets with another version than the control plane. See docs/esx.md#kubernikus.",
    )
