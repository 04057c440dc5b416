"""Every publisher. To add one, add its file in this folder, its name in `Sign`, and its line here."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from reconciler.features.publishing import drainsafe, hints, node_conditions
from reconciler.features.publishing.node_maintenances import object_changes, read_objects
from reconciler.features.publishing.publisher import Showing
from reconciler.features.publishing.settings import HINTS, PUBLISH
from reconciler.model.node import Node
from reconciler.model.problems import guarded
from reconciler.passes.plugin import Feature, NodeSigns, Standing, Wants, all_signs
from reconciler.settings.schema import Settings

ON_NODES = (drainsafe.PUBLISHER, node_conditions.PUBLISHER, hints.PUBLISHER)

_NO_SIGNS = NodeSigns()


def bears_signs(node: Node, prefix: str) -> bool:
    """Whether the node has a sign of ours, which may have to change even if the node has no event."""
    return any(guarded("a sign can't be read", partial(one.bears, node, prefix), True)[0] for one in ON_NODES)


def node_signs(node: Node, standing: Standing, showing: Showing) -> NodeSigns:
    """Return the changes of all signs on a node."""
    return all_signs(
        [
            guarded("a sign is not changed", partial(one.signs, node, standing, showing), _NO_SIGNS)[0]
            for one in ON_NODES
        ]
    )


def removed_signs(node: Node, prefix: str) -> NodeSigns:
    """Return the changes that remove all our signs from a node."""
    return all_signs([one.removed(node, prefix) for one in ON_NODES])


def _reads(settings: Settings) -> Wants:
    """Return the annotations and conditions of all signs, which are removed when they are not published."""
    del settings
    return Wants(
        conditions=frozenset().union(*(one.conditions for one in ON_NODES)),
        annotations=frozenset().union(*(one.annotations for one in ON_NODES)),
    )


def _signs(node: Node, standing: Standing, settings: Settings, now: datetime) -> NodeSigns:
    return node_signs(
        node, standing, Showing(PUBLISH.of(settings), settings.keys.prefix, now, HINTS.of(settings))
    )


FEATURE = Feature(
    "publishing",
    reads=_reads,
    read_objects=read_objects,
    bears_signs=bears_signs,
    signs=_signs,
    outlived=hints.removed_hints,
    object_changes=object_changes,
    removed=removed_signs,
)
