"""What wakes a serving reconciler before its time: a changed node, a changed settings file."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from watchfiles import watch

from reconciler.clients.kubernetes.connection import Connection
from reconciler.clients.kubernetes.node_watch import watch_nodes
from reconciler.errors import ClusterError
from reconciler.model.node import Wanted

log = logging.getLogger(__name__)
_RETRY = 5.0


class NodeWatcher:
    """Calls `wake` from its own thread for every change of a node field that the reconciler reads."""

    def __init__(self, connection: Connection, wanted: Wanted, wake: Callable[[], None]) -> None:
        """Take the connection and which fields count."""
        self._connection = connection
        self._wanted = wanted
        self._wake = wake
        self._stop = threading.Event()
        self._open = ExitStack()
        self._thread = threading.Thread(target=self._run, name="node watch", daemon=True)

    def __enter__(self) -> NodeWatcher:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching, and close the connection, so that the thread does not wait for the next change."""
        self._stop.set()
        self._open.close()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                names = self._open.enter_context(watch_nodes(self._connection, self._wanted))
                for _ in names:
                    self._wake()
                    if self._stop.is_set():
                        return
            except ClusterError as error:
                # The scheduled passes continue without the watch, and log the same error.
                log.warning("the watch of nodes ended: %s", error)
            self._stop.wait(_RETRY)


class FileWatcher:
    """Calls `wake` when a file's content changes, from a thread of its own.

    The folder is watched: Kubernetes updates a mounted ConfigMap by turning a link beside the file.
    """

    def __init__(self, file: Path, wake: Callable[[], None]) -> None:
        """Take the file as it was named, links and all."""
        self._file = file
        self._wake = wake
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="settings watch", daemon=True)

    def __enter__(self) -> FileWatcher:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        before = digest(self._file)
        folder = self._file.parent
        for _ in watch(folder, stop_event=self._stop, debounce=100, recursive=False, rust_timeout=500):
            now = digest(self._file)
            if now != before:
                before = now
                self._wake()


def digest(file: Path) -> bytes:
    """Return what tells two contents of a file apart; empty where there is none to read."""
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return b""
