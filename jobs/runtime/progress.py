"""Progress of drains for a person: bars on a terminal, a line for each new blocker elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from jobs.runtime.output import echo
from reconciler.model.drains import DrainProgress
from reconciler.report import safe


class Bars:
    """Shows drains on stderr; stdout is for scripts."""

    def __init__(self, then: Callable[[DrainProgress], None]) -> None:
        """Prepare bars on stderr; only a terminal shows them. `then` also gets the progress."""
        self._then = then
        self._console = Console(stderr=True)
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._told: dict[str, str] = {}
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[waits]}", markup=False),
            console=self._console,
        )

    def __enter__(self) -> Bars:
        """Start the display."""
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state on the screen."""
        if self._console.is_terminal:
            self._progress.stop()

    def show(self, progress: DrainProgress) -> None:
        """Show the progress of one drain; called from the drainer's thread."""
        self._then(progress)
        waits = safe.line(progress.blockers[0].because) if progress.blockers else ""
        with self._lock:
            if self._console.is_terminal:
                self._draw(progress, waits)
            elif waits and self._told.get(progress.node) != waits:
                self._told[progress.node] = waits
                echo(f"{progress.node}: {progress.blockers[0].pod} {waits}", err=True)

    def _draw(self, progress: DrainProgress, waits: str) -> None:
        task = self._tasks.get(progress.node)
        if task is None:
            task = self._progress.add_task(progress.node, total=progress.total or None, waits="")
            self._tasks[progress.node] = task
        self._progress.update(task, total=progress.total, completed=progress.gone, waits=waits)
