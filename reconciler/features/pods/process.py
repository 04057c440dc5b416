"""Tells of each pod that a drain moves, lets the cluster keep it, and says it again to who asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.runtime.log_line import write_events
from jobs.runtime.process import AskedPod, Companion, Leading, Observer, Process, Surroundings
from reconciler.features.pods import EVICTED, NAME

if TYPE_CHECKING:
    from jobs.runtime.line_keeper import Keeper
    from reconciler.features.pods.moved import MovedPod
    from reconciler.model.drains import DrainOrder, Eviction
    from reconciler.model.explanation import KnownMove


class _Telling(Companion):
    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._keeper: Keeper[MovedPod, MovedPod] | None = None

    def drains(self) -> None:
        """Get ready to keep what is moved. A person who drains by hand has no lock, and keeps nothing."""
        leading, settings = self._leading, self._leading.settings
        if settings is None or self._keeper is not None:
            return
        from jobs.runtime.line_keeper import Keeper
        from reconciler.features.pods.kept import MOVED_PODS
        from reconciler.features.pods.settings import PODS
        from reconciler.kubernetes.kept_lines import KeptInCluster

        place = KeptInCluster(MOVED_PODS, leading.connection, leading.target.namespace, leading.guard)
        self._keeper = Keeper(
            place,
            leading.clock.now,
            lambda: PODS.of(settings()).keep,
            lambda kept, pods, since: kept.with_lines(MOVED_PODS, pods, since),
        )

    def evicted(self, order: DrainOrder, eviction: Eviction) -> None:
        """Tell of a pod that was moved."""
        from reconciler.features.pods.moved import moved, to_fields

        pod = moved(order, eviction, self._leading.clock.now())
        self._leading.observers.happened(EVICTED, to_fields(pod))
        if self._keeper is not None:
            self._keeper.add(pod)

    def close(self) -> None:
        """Write what waits, for a short time."""
        if self._keeper is not None:
            self._keeper.close()


class _Log(Observer):
    def happened(self, event: str, fields: Mapping[str, object]) -> None:
        """Log a pod that was moved."""
        if event == EVICTED:
            write_events(event, fields)


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


def _observer(around: Surroundings, _: Observer) -> Observer | None:
    # What other commands print is for people.
    return _Log() if around.command == "serve" else None


PROCESS = Process(
    options={"explain": (_HISTORY,)},
    companion=_Telling,
    observer=_observer,
    config_maps=(NAME,),
    moves=_moves,
)
