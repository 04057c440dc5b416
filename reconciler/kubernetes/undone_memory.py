"""The writes of nodes that did not stay, as text for our ConfigMap.

A text that can't be read counts as none: these writes are then tried again without a pause.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from reconciler.model import limits
from reconciler.model.moments import from_text, to_text
from reconciler.model.undone import MOST, Undone

log = logging.getLogger(__name__)

_MOST_LOST = 20
_MOST_TIMES = 1000


def dump(undone: Iterable[Undone]) -> str:
    """Return them as text, empty for none. Equal ones give equal texts."""
    out = [
        {
            "node": one.node,
            "uid": one.uid,
            "lost": list(one.lost[:_MOST_LOST]),
            "because": one.because,
            "times": min(one.times, _MOST_TIMES),
            "last": to_text(one.last),
        }
        for one in sorted(undone, key=lambda one: one.node)[:MOST]
    ]
    return json.dumps(out, sort_keys=True, separators=(",", ":")) if out else ""


def load(text: str | None) -> tuple[Undone, ...]:
    """Parse the text. An empty or invalid text results in none."""
    if not text:
        return ()
    try:
        return tuple(
            Undone(
                node=limits.text(str(one["node"]), limits.NAME),
                uid=limits.text(str(one["uid"]), limits.NAME),
                lost=tuple(limits.text(str(key)) for key in one["lost"][:_MOST_LOST]),
                because=limits.text(str(one["because"])),
                times=limits.count(one["times"]),
                last=from_text(one["last"]),
            )
            for one in limits.loads(text, limits.LEDGER)[:MOST]
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("which writes did not stay can't be read, and is forgotten: error=%r", error)
        return ()
