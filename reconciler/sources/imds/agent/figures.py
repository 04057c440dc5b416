"""The few figures of the agent, in the text format of metrics. It needs the standard library only."""

from __future__ import annotations

import sys
from typing import NamedTuple

from jobs.runtime.health import Document
from reconciler import __version__

PREFIX = "node_maintenance_agent_"


class Family(NamedTuple):
    """All series of one name."""

    name: str
    type: str
    help: str
    labels: tuple[str, ...] = ()


BUILD_INFO = Family(
    f"{PREFIX}build_info", "gauge", "The version of the agent and of Python; always 1.", ("version", "python")
)
LAST_POLL = Family(f"{PREFIX}last_poll_timestamp_seconds", "gauge", "When IMDS gave its last valid answer.")
POLLS = Family(f"{PREFIX}polls_total", "counter", "Requests to IMDS for events.", ("result",))
EVENTS = Family(f"{PREFIX}events", "gauge", "Events of this VM in the last valid answer.")
WRITES = Family(
    f"{PREFIX}annotation_writes_total", "counter", "Writes of the annotation of the Node.", ("result",)
)

FAMILIES = (BUILD_INFO, LAST_POLL, POLLS, EVENTS, WRITES)


class Figures:
    """Counts from the start of the process. One thread counts, another one reads."""

    def __init__(self) -> None:
        """Begin with nothing counted, and no answer of IMDS."""
        self._polls = {"answered": 0, "failed": 0}
        self._writes = {"written": 0, "failed": 0}
        self._last: float | None = None
        self._events = 0

    def answered(self, at: float, events: int) -> None:
        """Count a valid answer of IMDS `at` a moment (Unix time), with so many events of this VM."""
        self._polls["answered"] += 1
        self._last, self._events = at, events

    def failed(self) -> None:
        """Count a request to IMDS without a valid answer."""
        self._polls["failed"] += 1

    def wrote(self, *, done: bool) -> None:
        """Count a write of the annotation, and whether the API server took it."""
        self._writes["written" if done else "failed"] += 1

    def document(self) -> Document:
        """Return all of them. Before the first answer of IMDS nothing is said of its time and its events."""
        python = ".".join(map(str, sys.version_info[:3]))
        lines = [*_head(BUILD_INFO), f'{BUILD_INFO.name}{{version="{__version__}",python="{python}"}} 1']
        if self._last is not None:
            lines += [*_head(LAST_POLL), f"{LAST_POLL.name} {self._last:.3f}"]
            lines += [*_head(EVENTS), f"{EVENTS.name} {self._events}"]
        for family, counts in ((POLLS, self._polls), (WRITES, self._writes)):
            lines += _head(family)
            lines += [f'{family.name}{{result="{result}"}} {count}' for result, count in counts.items()]
        body = "".join(f"{line}\n" for line in lines)
        return Document("text/plain; version=0.0.4; charset=utf-8", body.encode())


def _head(family: Family) -> list[str]:
    return [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.type}"]
