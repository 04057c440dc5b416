"""Every publisher: it shows the state of a case on its node to other tools, and decides nothing.

To add one, add its file in this folder, its name in `Sign`, and its line here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec import Struct

from reconciler.features.publishing import drainsafe, hints, node_conditions
from reconciler.features.publishing.node_maintenances import (
    IN_LEDGER,
    everything,
    keeps,
    object_changes,
    read_objects,
)
from reconciler.features.publishing.objects import OBJECTS, UPDATE
from reconciler.features.publishing.settings import HINTS, PUBLISH, EnabledSigns, Sign
from reconciler.model.node import LIFECYCLE, Node
from reconciler.model.problems import guarded
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.passes.parts import all_signs
from reconciler.passes.plugin import Feature, ShownObjects, Wants
from reconciler.settings.schema import Settings

Value = TypeVar("Value")


class NodePublisher(Struct, frozen=True):
    """Shows a case on the node itself.

    `sign` is its name in `publish`, None if a section of its own enables it. `bears` says whether the node
    has a sign of the installation with this prefix, which may have to change. `signs` returns the changes on
    the node; it removes its signs when the settings disable it. `removed` returns the changes that remove
    every sign of an installation. `annotations` and `conditions` are what it reads on every node, even while
    it is disabled.
    """

    sign: Sign | None
    bears: Callable[[Node, str], bool]
    signs: Callable[[Node, CaseDecision, EnabledSigns], NodeSigns]
    removed: Callable[[Node, str], NodeSigns]
    annotations: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()


ON_NODES = (
    NodePublisher(
        Sign.DRAINSAFE,
        drainsafe.bears,
        drainsafe.signs,
        drainsafe.removed,
        annotations=drainsafe.DRAINSAFE_KEYS,
    ),
    NodePublisher(
        Sign.NODE_CONDITIONS,
        node_conditions.bears,
        node_conditions.signs,
        node_conditions.removed,
        conditions=frozenset(LIFECYCLE),
    ),
    NodePublisher(None, hints.bears_hints, hints.signs, hints.removed_hints),
)

_NO_SIGNS = NodeSigns()


def bears_signs(node: Node, prefix: str) -> bool:
    """Whether the node has a sign of ours, which may have to change even if the node has no event."""
    return any(_each("a sign can't be read", lambda publisher: publisher.bears(node, prefix), True))


def node_signs(node: Node, decision: CaseDecision, showing: EnabledSigns) -> NodeSigns:
    """Return the changes of all signs on a node."""
    return all_signs(
        _each("a sign is not changed", lambda publisher: publisher.signs(node, decision, showing), _NO_SIGNS)
    )


def _each(what: str, ask: Callable[[NodePublisher], Value], otherwise: Value) -> list[Value]:
    """Return what each publisher answers, `otherwise` for one that fails: it harms its own sign only."""
    return [guarded(what, partial(ask, publisher), otherwise)[0] for publisher in ON_NODES]


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


def _signs(decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeSigns:
    settings = context.settings
    showing = EnabledSigns(PUBLISH.of(settings), settings.keys.prefix, context.now, HINTS.of(settings))
    return node_signs(node.read, decision, showing)


FEATURE = Feature(
    "publishing",
    actions=(UPDATE,),
    ledger=IN_LEDGER,
    reads=_reads,
    objects=ShownObjects(OBJECTS, read_objects, object_changes, everything),
    bears_signs=bears_signs,
    signs=_signs,
    outlived=hints.removed_hints,
    keeps=keeps,
    removed=removed_signs,
)
