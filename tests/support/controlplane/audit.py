"""The API server's audit log, read as requests: who asked what, and how it ended."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request that has been answered (or a watch that has begun or ended)."""

    verb: str
    user_agent: str
    user: str
    resource: str
    subresource: str
    name: str
    namespace: str
    code: int
    uri: str
    timestamp: datetime  # when the request came
    stage: str  # ResponseComplete; a watch has ResponseStarted as well, and Panic is a bug of the server


def read_audit_log(
    path: Path,
    *,
    user_agent: str | None = None,
    verbs: Collection[str] | None = None,
    since: datetime | None = None,
) -> list[AuditEntry]:
    """Entries whose user agent contains the text, whose verb is one of these, that came at `since` or later.

    A request is one entry: the beginning of a watch is left out where its end is there as well.
    """
    entries: dict[str, AuditEntry] = {}
    for event in _events(path):
        if user_agent is not None and user_agent not in event.get("userAgent", ""):
            continue
        if verbs is not None and event["verb"] not in verbs:
            continue
        entry = _entry(event)
        if since is None or entry.timestamp >= since:
            entries[event["auditID"]] = entry
    return list(entries.values())


def _events(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with path.open("rb") as log:
        for line in log:
            # The server may be in the middle of writing the last one.
            if line.endswith(b"\n"):
                yield json.loads(line)


def _entry(event: dict[str, Any]) -> AuditEntry:
    about = event.get("objectRef", {})
    return AuditEntry(
        verb=event["verb"],
        user_agent=event.get("userAgent", ""),
        user=event.get("user", {}).get("username", ""),
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        name=about.get("name", ""),
        namespace=about.get("namespace", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        uri=event["requestURI"],
        timestamp=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        stage=event["stage"],
    )
