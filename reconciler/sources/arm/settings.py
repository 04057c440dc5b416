"""`sources.arm`: reboots that Azure plans weeks ahead."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from pydantic import Field, model_validator

from reconciler.model.event import WaitForNotice
from reconciler.settings.fields import Duration, Flag, Section
from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.schema import SourceSection


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


SECTION: SourceSection[ArmSource] = SourceSection(
    key="arm",
    type=ArmSource,
    default=ArmSource(),
    description="Azure Resource Manager: reboots planned weeks ahead. See docs/azure.md.",
)

SECTIONS = (SECTION,)
