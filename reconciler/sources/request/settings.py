"""`sources.requests`: requests by a person or by other automation."""

from __future__ import annotations

from pydantic import Field

from reconciler.settings.fields import Flag, Section
from reconciler.settings.schema import SourceSection


class RequestsSource(Section):
    """Requests by a person or by other automation."""

    enabled: Flag = Field(default=True, description="Whether `<keys.prefix>/request` is read.")


SECTION: SourceSection[RequestsSource] = SourceSection(
    key="requests",
    type=RequestsSource,
    default=RequestsSource(),
    description="Requests in an annotation of the node.",
)

SECTIONS = (SECTION,)
