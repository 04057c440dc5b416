"""One message of a notification instance of a workflow."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from reconciler.model.codec import UnixMoment

LONGEST = 2000
"""Characters of a text that a template makes. The rest is left out."""


class WorkflowMessage(Struct, frozen=True):
    """A message about one node, as the template of the instance made it.

    `id` is the same for the same message in every process. `at` is when a pass found that it is due (UTC).
    `title` is the first message of a thread, empty for an instance without threads.
    """

    id: str
    instance: str
    node: str
    at: UnixMoment
    text: Annotated[str, Meta(max_length=LONGEST)]
    title: str = ""
