"""Follows what would be done in mode Observe, and keeps it."""

from __future__ import annotations

from functools import partial

import click

from jobs.runtime.process import Observer, Process, Surroundings, Viewed
from reconciler.features.observed import NAME, OBSERVED


def _observer(around: Surroundings, others: Observer) -> Observer | None:
    connection = around.connection
    # A sweep has no memory from one pass to the next, and writes nothing in mode Observe.
    if around.command != "serve" or connection is None:
        return None
    from reconciler.features.observed.cases import OBSERVED_CASES
    from reconciler.features.observed.observing import Observing
    from reconciler.kubernetes.kept_lines import KeptInCluster

    make = partial(KeptInCluster, OBSERVED_CASES, connection, around.target.namespace, lambda: None)
    return Observing(make, around.now, others)


def _view(asked: Viewed) -> int:
    from reconciler.features.observed.commands import show

    return show(asked)


_OPTION = click.option(
    "--observed",
    is_flag=True,
    help="What would have been done in mode Observe, and the way to Enforce, instead.",
)

PROCESS = Process(
    options={"history": (_OPTION,)}, observer=_observer, config_maps=(NAME,), views={OBSERVED: _view}
)
