"""The API server's audit log, read as requests: who asked what, and how it ended."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

_POD = "authentication.kubernetes.io/pod-name"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request that has been answered (or a watch that has begun or ended)."""

    verb: str
    user_agent: str
    user: str
    group: str  # of the API; empty for core
    resource: str
    subresource: str
    name: str
    namespace: str
    code: int
    uri: str
    timestamp: datetime  # when the request came
    stage: str  # ResponseComplete; a watch has ResponseStarted as well, and Panic is a bug of the server
    body: Any = None  # what was sent, where the policy keeps it
    pod: str = ""  # whose token was sent, if it is that of a Pod
    sources: tuple[str, ...] = ()  # the addresses from which it came


def read_audit_log(
    path: Path,
    *,
    user_agent: str | None = None,
    verbs: Collection[str] | None = None,
    since: datetime | None = None,
    offset: int = 0,
) -> list[AuditEntry]:
    """Entries whose user agent contains the text, whose verb is one of these, that came at `since` or later.

    A request is one entry: the beginning of a watch is left out where its end is there as well. What is
    written before `offset`, in bytes, is not read.
    """
    entries: dict[str, AuditEntry] = {}
    for event in _events(path, (user_agent or "").encode(), offset):
        if user_agent is not None and user_agent not in event.get("userAgent", ""):
            continue
        if verbs is not None and event["verb"] not in verbs:
            continue
        entry = _entry(event)
        if since is None or entry.timestamp >= since:
            entries[event["auditID"]] = entry
    return list(entries.values())


def log_size(path: Path) -> int:
    """How many bytes the log has now: an `offset` for what is written from now on."""
    return path.stat().st_size if path.exists() else 0


def _events(path: Path, text: bytes, offset: int) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with path.open("rb") as log:
        # The server begins a new file when the log is too long.
        log.seek(offset if offset <= log_size(path) else 0)
        for line in log:
            # Most lines are the controllers' and need not be parsed. The last one may not be complete.
            if text in line and line.endswith(b"\n"):
                yield json.loads(line)


def _entry(event: dict[str, Any]) -> AuditEntry:
    about = event.get("objectRef", {})
    return AuditEntry(
        verb=event["verb"],
        user_agent=event.get("userAgent", ""),
        user=event.get("user", {}).get("username", ""),
        group=about.get("apiGroup", ""),
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        name=about.get("name", ""),
        namespace=about.get("namespace", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        uri=event["requestURI"],
        timestamp=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        stage=event["stage"],
        body=event.get("requestObject"),
        pod="".join(event.get("user", {}).get("extra", {}).get(_POD, [])),
        sources=tuple(event.get("sourceIPs", [])),
    )
