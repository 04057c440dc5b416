"""`sources.imds`: Azure scheduled events, published by the node agent, and which of them are acknowledged."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from reconciler.settings.fields import Flag, Section
from reconciler.settings.mistakes import Mistake
from reconciler.settings.policies import EventPolicy
from reconciler.settings.schema import PolicyKey, PolicyWords, Settings, SourceSection


class ImdsSource(Section):
    """Scheduled events of the Azure Instance Metadata Service (IMDS)."""

    enabled: Flag = Field(default=True, description="Whether they are read.")


SECTION: SourceSection[ImdsSource] = SourceSection(
    key="imds",
    type=ImdsSource,
    default=ImdsSource(),
    description="Azure scheduled events, published by the node agent.",
)


class _Acknowledges(PolicyKey[bool], frozen=True, kw_only=True):
    def mistakes(self, settings: Settings) -> Iterator[Mistake]:
        if not SECTION.of(settings).enabled:
            message = "has no effect while sources.imds.enabled is false"
            yield from (Mistake(path, message) for path, value in self.given(settings) if value)

    def words(self, policy: EventPolicy, settings: Settings) -> PolicyWords:
        if not self.in_policy(policy):
            return PolicyWords()
        return PolicyWords(
            then="Once drained it is acknowledged.",
            ends="acknowledged",
            early="The nodes of an event start early only if all of them can start together.",
        )


ACKNOWLEDGES = _Acknowledges(
    key="acknowledge",
    type=Flag,
    default=False,
    description="Whether Azure is asked to start the event early (docs/azure.md#8-acknowledging).",
)

SECTIONS = (SECTION, ACKNOWLEDGES)
