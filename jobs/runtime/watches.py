"""Watches that begin passes: of nodes, and of the settings file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from watchfiles import watch

from jobs.runtime.pass_loop import About, Cause
from jobs.runtime.supervised import Ending, Supervised
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.scale.node_store import NodeStore, follow_nodes
from reconciler.model.node import Wanted
from reconciler.settings.load import read_settings

Wake = Callable[[Cause], None]
SETTINGS = Cause("settings", About.SETTINGS)


class NodeWatcher:
    """Calls `wake` from its own thread for every change of a node field that the reconciler reads.

    A watch that ends or fails, for whatever reason, begins again after a pause. The scheduled passes continue
    without it. The same thread watches until it is left, also after other settings.
    """

    def __init__(
        self, connection: Connection, wanted: Wanted, store: NodeStore, wake: Wake, ending: Ending
    ) -> None:
        """Watch these fields over this connection; the store has each change before the wake."""
        self._connection = connection
        self._wanted = wanted
        self._store = store
        self._wake = wake
        self._open = ExitStack()
        self._thread = Supervised("watch of nodes", self._watch, ending)

    def __enter__(self) -> NodeWatcher:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching, and close the connection, so that the thread does not wait for the next change."""
        self._thread.stop.set()
        self._open.close()
        self._thread.join()

    def want(self, wanted: Wanted) -> None:
        """Watch these fields from now on."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._open.close()

    def trouble(self) -> str:
        """Return what is wrong with the watch and since when, empty if nothing is."""
        return self._thread.trouble()

    def _watch(self, thread: Supervised) -> None:
        wanted: Wanted | None = None
        # A watch that ends by itself ends this.
        while not thread.stop.is_set() and wanted is not self._wanted:
            # Closes what the last try has left open.
            self._open.close()
            wanted = self._wanted
            changes = self._open.enter_context(follow_nodes(self._connection, wanted, self._store))
            # Only now: who stops the thread, or wants other fields, says so first, then closes what is open.
            if thread.stop.is_set() or wanted is not self._wanted:
                continue
            for change in changes:
                thread.well()
                self._wake(Cause(f"node {change.name}", About.NOTICE if change.urgent else About.NODE))


class FileWatcher:
    """Calls `wake` when a file's content changes, from a thread of its own.

    The folder is watched: Kubernetes updates a mounted ConfigMap by turning a link beside the file. Each pass
    compares the file as well, so a lost message delays new settings until the next pass.
    """

    def __init__(self, file: Path, wake: Wake, ending: Ending) -> None:
        """Watch this file by its given name, including links."""
        self._file = file
        self._wake = wake
        self._known = digest(file)
        self._thread = Supervised("watch of the settings file", self._watch, ending)

    def __enter__(self) -> FileWatcher:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        self._thread.join()

    def trouble(self) -> str:
        """Return what is wrong with the watch and since when, empty if nothing is."""
        return self._thread.trouble()

    def _watch(self, thread: Supervised) -> None:
        folder = self._file.parent
        for _ in watch(
            folder,
            stop_event=thread.stop,
            debounce=100,
            recursive=False,
            rust_timeout=500,
            yield_on_timeout=True,
        ):
            now = digest(self._file)
            if now != self._known:
                self._known = now
                self._wake(SETTINGS)
            thread.well()


def digest(file: Path) -> bytes:
    """Return a digest of the file's content, empty if the file can't be read."""
    try:
        return hashlib.sha256(read_settings(file)).digest()
    except OSError:
        return b""
