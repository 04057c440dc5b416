"""`sources`: who tells of maintenance."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from pydantic import Field, model_validator

from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.sections.fields import Duration, Flag
from reconciler.settings.sections.section import Section


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
