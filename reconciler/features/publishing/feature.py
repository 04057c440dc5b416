"""Every publisher. To add one, add its file in this folder, its name in `Sign`, and its line here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from reconciler.features.publishing.drainsafe import DrainsafeAnnotations
from reconciler.features.publishing.hints import SchedulingHints, removed_hints
from reconciler.features.publishing.node_conditions import LifecycleConditions
from reconciler.features.publishing.node_maintenances import NodeMaintenances
from reconciler.features.publishing.publisher import NodePublisher, ObjectPublisher, Showing
from reconciler.features.publishing.settings import HINTS, PUBLISH
from reconciler.model.errors import ClusterError
from reconciler.model.node import Node
from reconciler.model.ports import ClusterReader
from reconciler.model.problems import Gaps, guarded, internal
from reconciler.model.writes import Publication
from reconciler.passes.plugin import Feature, Fleet, NodeSigns, ObjectChanges, Standing, Wants, all_signs
from reconciler.settings.schema import Settings

ON_NODES: tuple[NodePublisher, ...] = (DrainsafeAnnotations(), LifecycleConditions(), SchedulingHints())
AS_OBJECTS: tuple[ObjectPublisher, ...] = (NodeMaintenances(),)

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


def read_objects(
    reader: ClusterReader, settings: Settings, earlier: Collection[str] = (), gaps: Gaps | None = None
) -> tuple[Mapping[str, Sequence[Any]], tuple[str, ...]]:
    """Return the published objects by sign, and a message for each kind that can't be read.

    `earlier` are the signs of publishers that may have objects, though the settings do not enable them any
    more. They only show something, so no pass fails because of them. With `gaps`, a missing permission is
    noted there instead of in a message.
    """
    found: dict[str, Sequence[Any]] = {}
    problems: list[str] = []
    for one in AS_OBJECTS:
        on = one.sign in PUBLISH.of(settings)
        if not on and one.sign not in earlier:
            continue
        try:
            objects = one.read(reader, settings.keys.prefix)
        except ClusterError as error:
            if error.needs and not on:
                problems.append(f"{one.objects} are no longer published, and stay as they are: {error}")
                found[one.sign] = ()
                continue
            if gaps is not None and error.needs:
                gaps.note(one.objects, error, "they are left as they are")
                continue
            problems.append(f"{one.objects} can't be read, and are left as they are: {error}")
            continue
        except Exception as error:  # noqa: BLE001 - a publisher's error harms that publisher only
            problem = internal(f"{one.objects} can't be read", error)
            problems.append(f"{one.objects} can't be read, and are left as they are: {problem}")
            continue
        if objects is not None or not on:
            found[one.sign] = objects or ()
    return found, tuple(problems)


def object_changes(
    published: Mapping[str, Sequence[Any]], fleet: Fleet, earlier: Collection[str] = ()
) -> ObjectChanges:
    """Return the changes of the objects that were read; `earlier` are the signs as for `read_objects`."""
    writes: list[Publication] = []
    moments: list[datetime] = []
    signs: set[str] = set()
    for one in AS_OBJECTS:
        on, objects = one.sign in PUBLISH.of(fleet.settings), published.get(one.sign)
        found = ObjectChanges()
        if objects is not None:
            changes = partial(one.changes if on else one.removed, objects, fleet)
            found, _ = guarded(f"{one.objects} are not changed", changes, ObjectChanges())
        writes += found.writes
        moments += found.moments
        # What is no longer published is read until no object is left.
        known = one.sign in earlier and (on or objects is None)
        if known or objects or found.writes:
            signs.add(one.sign.value)
    return ObjectChanges(tuple(writes), tuple(moments), tuple(sorted(signs)))


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
    outlived=removed_hints,
    object_changes=object_changes,
    removed=removed_signs,
)
