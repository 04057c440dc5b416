"""What is published in namespaces, and when: the thread that keeps moved pods does it.

The namespaces are recorded beside these pods before anything is written into them, so that another process
finds what it has to delete.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.features.pods.coming import ComingPod
from reconciler.features.pods.kept import MOVED_PODS
from reconciler.features.pods.moved import MovedPod
from reconciler.features.pods.published import Published, to_config_map
from reconciler.features.pods.publisher import MOST_NAMESPACES, Publisher, recorded_in
from reconciler.kubernetes.kept_lines import KeptLines
from reconciler.model.explanation import Moves
from reconciler.model.limits import EARLIEST
from reconciler.model.moments import shifted
from reconciler.model.values import replace

log = logging.getLogger(__name__)


class Night(Struct, frozen=True):
    """What the last pass knows of the coming night, which ends at `until` (UTC); people read it in `zone`.

    `nodes` has the pods that the drain of each of these nodes moves, None where they are not known now.
    """

    until: datetime
    zone: ZoneInfo
    nodes: Mapping[str, tuple[ComingPod, ...] | None]

    def after(self, before: Night | None) -> Night:
        """Return it with what was known before of nodes that are not known now."""
        known = before.nodes if before is not None else {}
        nodes = {name: known.get(name) if pods is None else pods for name, pods in self.nodes.items()}
        return replace(self, nodes=nodes)


class Telling:
    """Tells namespaces of their pods. `note` and `close` are for any thread, the rest for that of a Keeper.

    What the Keeper gets is a pod that was moved, or None, which asks it to look at what was noted.
    """

    def __init__(self, publisher: Publisher | None = None) -> None:
        """Begin; without a publisher, nothing is published."""
        self._publisher = publisher
        self._night: Night | None = None
        self._noted = self._asked = self._closing = self._too_many = False
        self._told: Mapping[str, Published] = {}
        self._names: Sequence[str] = ()
        self._quiet: Mapping[str, datetime] = {}
        """The namespaces that have nothing to be told, with the end of the first night without."""
        self._gone: frozenset[str] = frozenset()

    def note(self, night: Night | None) -> bool:
        """Note the coming night, None if nothing is published; return whether to look at it."""
        self._night = night.after(self._night) if night is not None else None
        self._noted = True
        asks = (night is not None or bool(self._names)) and not self._asked
        self._asked = self._asked or asks
        return asks

    def close(self) -> None:
        """Begin no further turn."""
        self._closing = True

    def fold(
        self, kept: KeptLines[MovedPod], items: Sequence[MovedPod | None], since: datetime
    ) -> KeptLines[MovedPod]:
        """Return what is kept with these pods, and with the namespaces in which something is published."""
        self._asked = False
        night, pods = self._night, [item for item in items if item is not None]
        if pods:
            kept = kept.with_lines(MOVED_PODS, pods, since)
        if self._publisher is None:
            return kept
        known = [name for name in recorded_in(kept.beside) if name not in self._gone]
        # Without new pods, what has become too old stays in the ConfigMap until it is written.
        recent = kept.with_lines(MOVED_PODS, (), since)
        self._told = self._to_tell(recent, night, known) if night is not None else {}
        names = [*known, *sorted(self._told.keys() - set(known))]
        if len(names) > MOST_NAMESPACES and not self._too_many:
            log.warning("of %d namespaces, only %d are told of their pods", len(names), MOST_NAMESPACES)
        self._too_many, self._names = len(names) > MOST_NAMESPACES, names[:MOST_NAMESPACES]
        return replace(kept, beside=" ".join(sorted(self._names)))

    def _to_tell(
        self, kept: KeptLines[MovedPod], night: Night, known: Sequence[str]
    ) -> Mapping[str, Published]:
        """Return what is to be published in each namespace.

        In those that are `known` and have no such pods any more, that there are none stays published until
        the night ends: a start that is not known for a moment deletes nothing.
        """
        moved: defaultdict[str, list[MovedPod]] = defaultdict(list)
        coming: defaultdict[str, list[ComingPod]] = defaultdict(list)
        for pod in kept.lines:
            moved[pod.namespace].append(pod)
        for pods in night.nodes.values():
            for coming_pod in pods or ():
                coming[coming_pod.namespace].append(coming_pod)
        busy = moved.keys() | coming.keys()
        self._quiet = {name: self._quiet.get(name, night.until) for name in known if name not in busy}
        quiet = {name for name, until in self._quiet.items() if until == night.until}

        # A moment that goes on with each write would let all namespaces be written again.
        whole = kept.whole_from.replace(minute=0, second=0, microsecond=0)
        whole = shifted(whole, timedelta(hours=1)) if whole != kept.whole_from else whole
        if night.until - whole > timedelta(days=3):
            whole = shifted(whole.replace(hour=0), timedelta(days=1))

        def order(pod: ComingPod) -> tuple[bool, datetime, str, str]:
            needs = pod.answer in (Moves.BLOCKED, Moves.UNKNOWN)
            return not needs, pod.start or EARLIEST, pod.node, pod.pod

        return {
            name: Published(
                night.until, whole, night.zone, tuple(moved[name]), tuple(sorted(coming[name], key=order))
            )
            for name in busy | quiet
        }

    def turn(self) -> None:
        """Write what the last `fold` has found, once it is recorded; raises LockLost."""
        # Before the first pass has ended, nobody knows what is to be published.
        if self._publisher is None or self._closing or not self._noted:
            return
        wanted = {name: to_config_map(self._told[name]) for name in self._names if name in self._told}
        self._gone = self._publisher.turn(wanted, [name for name in self._names if name not in wanted])
