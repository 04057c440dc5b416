"""Keeps the cases that end and what people do, in the cluster, and in a file if one is named."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.runtime.log_line import Level, write_events
from jobs.runtime.output import echo
from jobs.runtime.process import Companion, Leading, Observer, Process, Surroundings
from reconciler.features.history import NAME
from reconciler.model.sayings import DEED, Deed, to_fields

if TYPE_CHECKING:
    from reconciler.features.history.file import HistoryFile
    from reconciler.features.history.recorder import Recorder
    from reconciler.model.ended_case import EndedCase
    from reconciler.model.outcome import Outcome
    from reconciler.model.plan import Plan
    from reconciler.model.ports import Notifier


HISTORY_FAILED = "cannot write the history"
"""The `event` of a line in a log."""


def _opened(ctx: click.Context, param: click.Parameter, value: Path | None) -> HistoryFile | None:
    """Return the file; raises OutputError before anything else is done."""
    if value is None or ctx.resilient_parsing:
        return None
    from reconciler.features.history.file import HistoryFile

    return HistoryFile(value)


_OPTION = click.option(
    "--history",
    type=click.Path(path_type=Path),
    callback=_opened,
    metavar="FILE",
    help="Append a line of JSON to this file for each case that ends, and for what people do. `reconciler "
    "history FILE` sums it up.",
)


class _Keeping(Companion):
    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._recorder: Recorder | None = None

    def after(self, plan: Plan, outcomes: tuple[Outcome, ...], notifier: Notifier) -> Sequence[str]:
        """Note what people say of nodes."""
        from reconciler.features.history.remembered import Look

        self._made().saw(Look.of(plan))
        return ()

    def ended(self, cases: Sequence[EndedCase]) -> None:
        """Keep the cases that have ended."""
        for case in cases:
            self._made().add(case)

    def did(self, deed: Deed) -> None:
        """Keep what a person did."""
        self._made().add(deed)

    def close(self) -> None:
        """Write what waits, for a short time."""
        if self._recorder is not None:
            self._recorder.close()

    def _made(self) -> Recorder:
        if self._recorder is None:
            from reconciler.features.history.kept import HISTORY
            from reconciler.features.history.recorder import Recorder
            from reconciler.features.history.settings import AUDIT
            from reconciler.kubernetes.kept_lines import KeptInCluster

            leading, settings = self._leading, self._leading.settings
            place = KeptInCluster(HISTORY, leading.connection, leading.target.namespace, leading.guard)
            self._recorder = Recorder(
                place,
                leading.clock.now,
                lambda: AUDIT.of(settings()).keep if settings is not None else timedelta(),
                lambda deed: leading.observers.happened(DEED, to_fields(deed)),
            )
        return self._recorder


def _companion(leading: Leading) -> Companion | None:
    # A person who drains by hand has no lock, and keeps nothing.
    return _Keeping(leading) if leading.settings is not None else None


def _observer(around: Surroundings, _: Observer) -> Observer | None:
    file = around.given.get("history")
    if file is None:
        return None
    from reconciler.features.history.file import CaseHistory

    return CaseHistory(file, _log if around.command == "serve" else partial(echo, err=True))


def _log(because: str) -> None:
    """Log that cases can't be appended to the file; they are in the log."""
    write_events(HISTORY_FAILED, {"because": because}, level=Level.ERROR)


PROCESS = Process(
    options={"serve": (_OPTION,), "sweep": (_OPTION,)},
    companion=_companion,
    observer=_observer,
    config_maps=(NAME,),
)
