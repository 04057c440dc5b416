"""Tells of each pod that a drain moves, lets the cluster keep it, and says it again to who asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.runtime.process import AskedPod, Companion, Leading, PassPorts, Ports, Process
from reconciler.features.pods import EVICTED, NAME

if TYPE_CHECKING:
    from jobs.runtime.line_keeper import Keeper
    from reconciler.features.pods.moved import MovedPod
    from reconciler.features.pods.telling import Telling
    from reconciler.model.drains import DrainOrder, Eviction
    from reconciler.model.explanation import KnownMove
    from reconciler.model.outcome import Outcome
    from reconciler.model.plan import Plan
    from reconciler.model.ports import Notifier
    from reconciler.settings.schema import Settings


class _Keeping(Companion):
    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._keeper: Keeper[MovedPod, MovedPod | None] | None = None
        self._telling: Telling | None = None

    def drains(self) -> None:
        """Get ready to keep what is moved. A person who drains by hand has no lock, and keeps nothing."""
        if self._leading.settings is not None:
            self._begin(self._leading.settings)

    def after(self, plan: Plan, outcomes: tuple[Outcome, ...], notifier: Notifier) -> Sequence[str]:
        """Publish in namespaces which pods drains have moved, and which they move in the coming night."""
        from reconciler.features.pods.settings import PODS
        from reconciler.settings.schema import Mode

        leading = self._leading
        if leading.settings is None or not leading.goes_on:
            return ()
        settings, night = leading.settings(), None
        if settings.mode is Mode.OBSERVE:
            # Nothing is written in this mode, so nothing is deleted either.
            return ()
        if PODS.of(settings).publish:
            from reconciler.features.pods.coming import Foreseen, end_of_night
            from reconciler.features.pods.feature import FEATURE
            from reconciler.features.pods.telling import Night

            parts = ((node.node, node.of_features.get(FEATURE.name)) for node in plan.nodes)
            nodes = {name: part.pods for name, part in parts if isinstance(part, Foreseen)}
            night = Night(end_of_night(plan.now, settings.time_zone), settings.time_zone, nodes)
            self._begin(leading.settings)
        if self._keeper is not None and self._telling is not None and self._telling.note(night):
            self._keeper.add(None)
        return ()

    def evicted(self, order: DrainOrder, eviction: Eviction) -> None:
        """Tell of a pod that was moved."""
        from reconciler.features.pods.moved import moved, to_fields

        pod = moved(order, eviction, self._leading.clock.now())
        self._leading.observers.happened(EVICTED, to_fields(pod))
        if self._keeper is not None:
            self._keeper.add(pod)

    def close(self) -> None:
        """Write what waits, for a short time."""
        if self._telling is not None:
            self._telling.close()
        if self._keeper is not None:
            self._keeper.close()

    def _begin(self, settings: Callable[[], Settings]) -> None:
        if self._keeper is not None:
            return
        from jobs.runtime.line_keeper import Keeper
        from reconciler.features.pods.kept import MOVED_PODS
        from reconciler.features.pods.publisher import Publisher
        from reconciler.features.pods.settings import PODS
        from reconciler.features.pods.telling import Telling
        from reconciler.kubernetes.kept_lines import KeptInCluster

        leading = self._leading
        connection, guard, own = leading.connection, leading.guard, leading.target.namespace
        self._telling = Telling(Publisher(connection, guard, own) if leading.goes_on else None)
        self._keeper = Keeper(
            KeptInCluster(MOVED_PODS, connection, own, guard),
            leading.clock.now,
            lambda: PODS.of(settings()).keep,
            self._telling.fold,
            written=self._telling.turn,
        )


def _ports(given: Ports) -> Callable[[Settings], PassPorts]:
    from reconciler.features.pods.feature import MAPS
    from reconciler.features.pods.publisher import PublishedMaps
    from reconciler.http.retrying import read_only

    maps = PublishedMaps(given.connection, given.guard or read_only, given.target.namespace)
    ports = PassPorts(clients={MAPS.name: maps})
    return lambda settings: ports


_HISTORY = click.option(
    "--history",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Of a pod: read a file of --history, or a log of serve, for how it was moved, and not what the "
    "cluster keeps. May be repeated.",
)


def _moves(asked: AskedPod) -> tuple[Sequence[KnownMove], Sequence[str]]:
    from reconciler.features.pods.asked import moves_in_cluster, moves_in_files

    files = asked.given.get("history", ())
    return moves_in_files(asked, files) if files else moves_in_cluster(asked)


PROCESS = Process(
    options={"explain": (_HISTORY,)}, companion=_Keeping, ports=_ports, config_maps=(NAME,), moves=_moves
)
