"""`sources.aws`: scheduled events of EC2."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field, model_validator

from reconciler.settings.fields import Duration, Flag, Section
from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.schema import SourceSection

_OFTEN = timedelta(minutes=1)


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


SECTION: SourceSection[AwsSource] = SourceSection(
    key="aws",
    type=AwsSource,
    default=AwsSource(),
    description="Scheduled events of EC2. See docs/aws.md.",
)

SECTIONS = (SECTION,)
