"""Reads the lines about moved pods from a file of `--history`, or from a log of `serve`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from jobs.runtime.event_lines import read_events
from reconciler.features.pods import EVICTED
from reconciler.features.pods.moved import MovedPod, from_fields

MOST = 10_000
"""Pods that are kept in memory, the newest ones."""


class PodLines:
    """The pods of some files that were moved since a moment (aware).

    They are those of a namespace (None: of all), with a `name` those of this one.

    `left_out` counts those that are not kept, because there are too many, and `broken` the lines about pods
    that can't be read.
    """

    def __init__(self, since: datetime, namespace: str | None, name: str | None = None) -> None:
        """Begin without pods."""
        self._since = since
        # Most lines are about other pods, and need no parser.
        whole = f'{name}"' if name is not None else ""
        self._needle = f'"{namespace}/{whole}'.encode() if namespace is not None else b""
        self._namespace, self._name = namespace, f"{namespace}/{name}" if name is not None else None
        self._same: dict[str, str] = {}
        self._pods: list[MovedPod] = []
        self.left_out = self.broken = 0

    @property
    def pods(self) -> tuple[MovedPod, ...]:
        """Each pod once, in the order of their moments, the newest `MOST`."""
        self._cut(MOST)
        return tuple(self._pods)

    def read(self, path: Path) -> None:
        """Read a file, `-` for stdin; raises `click.FileError` if it can't be read."""
        for pod in read_events(EVICTED, path, self._pod_of, self._needle):
            if pod is None:
                self.broken += 1
                continue
            chosen = self._namespace in (None, pod.namespace) and self._name in (None, pod.pod)
            if pod.at >= self._since and chosen:
                self._pods.append(pod)
                if len(self._pods) >= 2 * MOST:
                    self._cut(MOST)

    def _pod_of(self, fields: dict[str, Any]) -> MovedPod:
        for key in ("node", "nodeUid", "owner", "why"):
            # Many lines have the same text, which is kept once.
            text = fields.get(key)
            if isinstance(text, str):
                fields[key] = self._same.setdefault(text, text)
        return from_fields(fields)

    def _cut(self, most: int) -> None:
        once = {(pod.uid, pod.at): pod for pod in self._pods}
        kept = sorted(once.values(), key=lambda pod: (pod.at, pod.pod))
        self.left_out += max(len(kept) - most, 0)
        self._pods = kept[-most:]
