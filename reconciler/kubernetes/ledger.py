"""The ledger as the data of its ConfigMap, and the holds of many nodes in it, which only people write.

A text of the core that can't be read is dropped with a warning: replaced nodes stop holding places of the
budget, and writes that did not stay are tried again without a pause. The last start keeps the spacing between
drains, so the ledger says if it can't be read. All other keys are parts of plugins.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

from msgspec import Struct

from reconciler.http.retrying import Guard, patiently, write_until_settled
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import LEDGER, Connection, Request, core
from reconciler.kubernetes.json_patch import Patch, send_patch
from reconciler.model import limits
from reconciler.model.errors import Conflict, NotFound
from reconciler.model.event import Kind
from reconciler.model.instructions import Ended, PersonHold, before_text, fleet_holds, fleet_text, said_before
from reconciler.model.moments import from_text, to_text
from reconciler.model.snapshot import KEYS, MOST, Ledger, Replaced, Undone
from reconciler.model.values import decoded, encoded

log = logging.getLogger(__name__)

Value = TypeVar("Value", bound=Struct)

LAST_START = "lastStart"
_LONGEST = 200
REPLACED = "replaced"
LASTED = "lasted"
HOLDS = "holds"
ENDED = "endedHolds"
UNDONE = "undone"

_SECOND = timedelta(seconds=1)


def from_data(data: Mapping[str, str]) -> Ledger:
    """Return the ledger; `unread` is set where its last start can't be read."""
    last_start, unread = None, ""
    try:
        last_start = from_text(data[LAST_START]) if data.get(LAST_START) else None
    except (ValueError, TypeError, AttributeError) as error:
        unread = limits.text(str(error), _LONGEST)
    # A text such as `Reboot=1260` (seconds); what can't be read of it is left out.
    lasted: dict[Kind, timedelta] = {}
    for part in limits.text(data.get(LASTED, ""), _LONGEST).split(","):
        name, _, seconds = part.partition("=")
        if name in set(Kind) and re.fullmatch(r"[0-9]{1,6}", seconds):
            lasted[Kind(name)] = timedelta(seconds=int(seconds))
    return Ledger(
        last_start=last_start,
        unread=unread,
        replaced=_list(Replaced, data.get(REPLACED), "which nodes were replaced"),
        lasted=lasted,
        holds=fleet_holds(data.get(HOLDS, "")),
        ended=said_before(data.get(ENDED, "")),
        undone=_list(Undone, data.get(UNDONE), "which writes did not stay")[:MOST],
        parts={key: text for key, text in data.items() if key not in KEYS and text},
    )


def to_data(ledger: Ledger, before: Mapping[str, str]) -> dict[str, str]:
    """Return the data to merge over what was there `before`, empty if nothing changes.

    The last start never moves back, and keys that the ledger does not change stay as they are.
    """
    known = from_data(before)
    merged = ledger.merged(known)
    if before and merged == known:
        return {}
    data = {
        LAST_START: to_text(merged.last_start) if merged.last_start else "",
        REPLACED: _list_text(merged.replaced),
        UNDONE: _list_text(sorted(merged.undone, key=lambda undone: undone.node)[:MOST]),
        LASTED: ",".join(f"{kind}={length // _SECOND}" for kind, length in sorted(merged.lasted.items())),
        **ledger.new_parts,
    }
    if merged.unread:
        # What can't be read is replaced by a start only.
        del data[LAST_START]
    return {key: text for key, text in data.items() if text or key in before}


def _list_text(values: Iterable[Struct]) -> str:
    documents = list(map(encoded, values))
    return json.dumps(documents, sort_keys=True, separators=(",", ":")) if documents else ""


def _list(kind: type[Value], text: str | None, what: str) -> tuple[Value, ...]:
    try:
        documents = limits.loads(text, limits.LEDGER) if text else ()
        return tuple(decoded(kind, document) for document in documents)
    except (ValueError, TypeError) as error:
        log.warning("%s can't be read, and is forgotten: error=%r", what, error)
        return ()


Data = Mapping[str, str]
Holds = tuple[PersonHold, ...]


def read_data(connection: Connection, namespace: str) -> Data:
    """Return the data of our ConfigMap, empty if there is none yet; the errors of ClusterError."""
    found = objects.find(connection, core(namespace) / "configmaps" / LEDGER, objects.ConfigMap)
    return (found.data if found is not None else None) or {}


def change_data(
    connection: Connection,
    namespace: str,
    change: Callable[[Data], Mapping[str, str | None]],
    guard: Guard = lambda: None,
) -> None:
    """Merge what `change` makes of the data of our ConfigMap into it, or create it. Empty: no write.

    None removes a key. If a key that changes is not as it was read, the ConfigMap is read again. Calls the
    guard before each write. Raises Conflict if another client keeps writing these keys, NotFound without the
    namespace, and the other errors of ClusterError.
    """
    place = core(namespace) / "configmaps"

    def write() -> None:
        found = objects.find(connection, place / LEDGER, objects.ConfigMap)
        before = (found.data if found is not None else None) or {}
        data = {key: text for key, text in change(before).items() if before.get(key) != text}
        if not data:
            return
        guard()
        if found is None:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LEDGER}, "data": data}
            connection.send(Request("POST", place, body=body))
            return
        patch = Patch(found.metadata.uid)
        known = {key: before.get(key) for key in data}
        patch.change_texts(known, data, "data", exists=bool(before))
        send_patch(connection, place / LEDGER, patch)

    try:
        write_until_settled(lambda: patiently(write, sleep=connection.sleep), sleep=connection.sleep)
    except Conflict as error:
        message = f"ConfigMap {namespace}/{LEDGER}: another client keeps writing it"
        raise Conflict(message, status=409) from error


def _holds_in(data: Data) -> Holds:
    """Return the holds of all nodes and of pools. Only people write this key, with `reconciler hold`."""
    return fleet_holds(data.get(HOLDS, ""))


def read_holds(connection: Connection, namespace: str) -> Holds:
    """Return the holds of all nodes and of pools, none if there is no ledger; the errors of ClusterError."""
    return _holds_in(read_data(connection, namespace))


def change_holds(
    connection: Connection,
    namespace: str,
    change: Callable[[Holds], Holds],
    ends: Callable[[PersonHold], Ended] | None = None,
) -> Holds:
    """Write the holds that `change` makes of those that are there, and return the former ones.

    `ends` says of a hold that it leaves out who has ended it. The last of these are kept.

    Raises ValueError for more holds than a pass reads, and what `change_data` raises.
    """
    before: Holds = ()

    def changed(data: Data) -> Mapping[str, str | None]:
        nonlocal before
        before = _holds_in(data)
        after = change(before)
        ended = [ends(hold) for hold in before if hold not in after] if ends is not None else []
        return {HOLDS: fleet_text(after) or None, **_with_ended(data, ended)}

    try:
        change_data(connection, namespace, changed)
    except NotFound as error:
        message = (
            f"there is no namespace {namespace}; give the one of the reconciler with --reconciler-namespace"
        )
        raise NotFound(message, status=404) from error
    return before


def keep_release(connection: Connection, namespace: str, release: Ended) -> None:
    """Keep who has released all nodes, for the next pass; the errors of ClusterError.

    Without the namespace there is no reconciler, and nothing is kept.
    """
    with suppress(NotFound):
        change_data(connection, namespace, lambda data: _with_ended(data, [release]))


def _with_ended(data: Data, ended: Sequence[Ended]) -> dict[str, str]:
    return {ENDED: before_text((*said_before(data.get(ENDED, "")), *ended))} if ended else {}
