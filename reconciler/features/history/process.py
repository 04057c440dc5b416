"""Keeps the cases that end, if a file for them is named."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobs.runtime.log_line import Level, write_events
from jobs.runtime.output import echo
from jobs.runtime.process import Observer, Process, Surroundings

if TYPE_CHECKING:
    from reconciler.features.history.file import HistoryFile


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
    help="Append a line of JSON to this file for each case that ends. `reconciler history FILE` sums it up.",
)


def _observer(around: Surroundings, _: Observer) -> Observer | None:
    file = around.given.get("history")
    if file is None:
        return None
    from reconciler.features.history.file import CaseHistory

    if around.command != "serve":
        return CaseHistory(file, partial(echo, err=True))
    return CaseHistory(file, _log)


def _log(because: str) -> None:
    """Log that cases can't be appended to the file; they are in the log."""
    write_events(HISTORY_FAILED, {"because": because}, level=Level.ERROR)


PROCESS = Process(options={"serve": (_OPTION,), "sweep": (_OPTION,)}, observer=_observer)
