"""Messages about nodes in the words of whoever wrote the settings, and where they go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from reconciler.model.values import UnixMoment

LONGEST = 2000
"""Characters of a text that a template makes. The rest is left out."""


class ProfileMessage(Struct, frozen=True):
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


class MessageReceiver(Struct, frozen=True):
    """Where the messages of the instance `name` go; `type` is what the settings call this kind.

    `to` has what a transport of this kind needs, by the names that it has there; a secret is a `Secret`.
    """

    name: str
    type: str
    to: Mapping[str, Any]
