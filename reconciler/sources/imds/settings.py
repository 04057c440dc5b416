"""`sources.imds`: Azure scheduled events, published by the node agent."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from reconciler.model.event import Kind
from reconciler.settings.fields import Flag, Section
from reconciler.settings.mistakes import Mistake
from reconciler.settings.schema import Settings, SourceSection


class ImdsSource(Section):
    """Scheduled events of the Azure Instance Metadata Service (IMDS)."""

    enabled: Flag = Field(default=True, description="Whether they are read.")


class _Section(SourceSection[ImdsSource], frozen=True, kw_only=True):
    def mistakes(self, settings: Settings) -> Iterator[Mistake]:
        if not self.of(settings).enabled:
            for path, events in settings.all_events():
                for kind in Kind:
                    if events.of(kind).acknowledge:
                        message = "has no effect while sources.imds.enabled is false"
                        yield Mistake((*path, kind.value, "acknowledge"), message)


SECTION = _Section(
    key="imds",
    type=ImdsSource,
    default=ImdsSource(),
    description="Azure scheduled events, published by the node agent.",
)

SECTIONS = (SECTION,)
