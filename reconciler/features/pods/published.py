"""What is published of the pods of a namespace: as a value, and as the data of a ConfigMap, with a limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.calendar.values import parse_zone
from reconciler.features.pods.coming import ComingPod
from reconciler.features.pods.moved import MovedPod
from reconciler.model import limits
from reconciler.model.moments import from_text, shifted, to_text
from reconciler.model.values import decoded, encoded, parsed

LARGEST = 64 << 10
"""Bytes of the lines about pods that were moved, and as many of those about pods that are to be moved."""

MOVED, WHOLE_FROM, TONIGHT, UNTIL, LEFT_OUT, ZONE = (
    *("moved", "wholeFrom", "tonight", "until", "leftOut", "timeZone"),
)
"""The keys of the ConfigMap."""

Row = TypeVar("Row", MovedPod, ComingPod)


class Published(Struct, frozen=True):
    """The pods of a namespace: those that were moved, and those that are to be moved until `until` (UTC).

    From `whole_from` on (UTC) no pod that was moved is missing. `left_out` pods that are to be moved are not
    here, because there are too many. `zone` is the one in which people read moments.
    """

    until: datetime
    whole_from: datetime
    zone: ZoneInfo
    moved: tuple[MovedPod, ...] = ()
    coming: tuple[ComingPod, ...] = ()
    left_out: int = 0


def to_config_map(published: Published) -> dict[str, str]:
    """Return the data of the ConfigMap; above the limit, the oldest and the latest pods are left out."""
    moved = _lines(reversed(published.moved))
    first = len(published.moved) - len(moved)
    whole = published.whole_from
    if first:
        # The last one that is left out was moved at this moment, and perhaps others with it.
        whole = max(whole, shifted(published.moved[first - 1].at, timedelta(seconds=1)))
    coming = _lines(published.coming)
    return {
        MOVED: "\n".join(reversed(moved)),
        WHOLE_FROM: to_text(whole),
        TONIGHT: "\n".join(coming),
        UNTIL: to_text(published.until),
        LEFT_OUT: str(published.left_out + len(published.coming) - len(coming)),
        ZONE: published.zone.key,
    }


def from_config_map(data: Mapping[str, str], namespace: str) -> Published:
    """Return what the data of the ConfigMap in a namespace says; raises ValueError if it can't be read.

    Whoever may write there can write anything, so pods of other namespaces are left out.
    """
    try:
        moved = _rows(data[MOVED], MovedPod, namespace)
        coming = _rows(data[TONIGHT], ComingPod, namespace)
        until, whole_from = from_text(data[UNTIL]), from_text(data[WHOLE_FROM])
        left_out = limits.count(int(data[LEFT_OUT]))
        zone = parse_zone(data[ZONE])
    except KeyError as error:
        raise ValueError(f"it has no key {error.args[0]}") from error
    except ValueError as error:
        raise ValueError(limits.text(str(error), 100)) from error
    return Published(until, whole_from, zone, tuple(sorted(moved, key=lambda pod: pod.at)), coming, left_out)


def _lines(rows: Iterable[MovedPod | ComingPod]) -> list[str]:
    """Return the lines of the first rows, as many as the limit has room for."""
    lines: list[str] = []
    room = LARGEST
    for row in rows:
        # Other characters than those of ASCII are escapes, so a character is a byte.
        line = json.dumps(encoded(row), separators=(",", ":"))
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return lines


def _rows(text: str, kind: type[Row], namespace: str) -> tuple[Row, ...]:
    if len(text) > LARGEST:
        raise ValueError(f"it has more than {LARGEST} characters")
    rows = [decoded(kind, parsed(line, LARGEST)) for line in text.splitlines() if line]
    return tuple(row for row in rows if row.namespace == namespace)
