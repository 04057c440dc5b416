"""`hooks`: what may hold a step of a node's maintenance."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from reconciler.settings.sections.fields import Duration
from reconciler.settings.sections.section import Section


class Hooks(Section):
    """What may hold a step of a node's maintenance, see docs/hooks.md."""

    timeout: Duration = Field(
        default=timedelta(minutes=10),
        description="How long a hook may hold its step, counted from the first pass in which it does. Then "
        "a Warning Event `HookTimedOut` is written, and the step goes on. A drain never waits for a hook "
        "beyond the latest start of its event. 0s: hooks hold nothing.",
    )
