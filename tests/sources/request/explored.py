"""What people request in the histories of the exploration."""

from __future__ import annotations

import json
from collections.abc import Iterator

from reconciler.model.event import Kind
from reconciler.model.moments import from_text
from reconciler.model.node import Node
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from reconciler.sources.request.settings import SECTION
from tests.explore.truth import KEYS, Channel, Told

_KINDS = {kind.value.casefold(): kind for kind in Kind if kind is not Kind.UNKNOWN}


def channels(world: World, node: Node, policy: Settings) -> Iterator[Channel]:
    """Yield the request on a node."""
    if SECTION.of(policy).enabled:
        yield _request(node)


def _request(node: Node) -> Channel:
    text = node.annotations.get(KEYS.request)
    if text is None:
        return Channel("request")
    document = json.loads(text)
    kind = _KINDS.get(str(document["kind"]).casefold())
    if kind is None:
        # Nobody knows what was meant, so nobody knows that the former request is withdrawn.
        return Channel("request", readable=False, strange=True)
    date = document.get("notBefore")
    # Another ID is another request.
    what = f"{kind} {date or ''} {document.get('id', '')}"
    told = Told("request", what, kind, from_text(date) if date else None)
    return Channel("request", told=(told,))
