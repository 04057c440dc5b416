"""Follows what would be done in mode Observe, keeps it, and shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from jobs.runtime.process import Observer, Passed, Process, Reported, Surroundings, Viewed
from reconciler.features.observed import NAME, OBSERVED

if TYPE_CHECKING:
    from datetime import datetime

    from jobs.runtime.environment import Target
    from reconciler.kubernetes.connection import Connection
    from reconciler.model.findings import KnownFindings
    from reconciler.model.panels import Panel


def _observer(around: Surroundings, others: Observer) -> Observer | None:
    if around.command != "serve" or around.connection is None:
        return None
    return _observing(around.connection, around.target, around.now, others, goes_on=True)


def _looked(reported: Reported, others: Observer) -> None:
    plan = reported.plan
    observing = _observing(reported.connection, reported.target, lambda: plan.now, others, goes_on=False)
    with observing:
        observing.after(Passed(plan, reported.settings))


def _observing(
    connection: Connection, target: Target, now: Callable[[], datetime], others: Observer, *, goes_on: bool
) -> Observer:
    from reconciler.features.observed.cases import OBSERVED_CASES
    from reconciler.features.observed.observing import Observing
    from reconciler.kubernetes.kept_lines import KeptInCluster

    # Nobody has the lock in this mode.
    place = KeptInCluster(OBSERVED_CASES, connection, target.namespace, lambda: None)
    return Observing(place, now, others, goes_on=goes_on)


def _panels(reported: Reported, findings: KnownFindings | None) -> Sequence[Panel]:
    from reconciler.features.observed.commands import panels

    return panels(reported, findings)


def _view(asked: Viewed) -> int:
    from reconciler.features.observed.commands import show

    return show(asked)


_OPTION = click.option(
    "--observed",
    is_flag=True,
    help="What would have been done in mode Observe, and the way to Enforce, instead.",
)

PROCESS = Process(
    options={"history": (_OPTION,)},
    observer=_observer,
    looked=_looked,
    panels=_panels,
    config_maps=(NAME,),
    views={OBSERVED: _view},
)
