"""The nodes whose replacements may be on their way, as text for our ConfigMap.

A text that can't be read is taken for none: it costs the budget's patience with them, and nothing else.
"""

from __future__ import annotations

import json
import logging

from reconciler.model.moments import from_text, to_text
from reconciler.model.snapshot import Replaced

log = logging.getLogger(__name__)


def dump(replaced: tuple[Replaced, ...]) -> str:
    """Return them as text, the same for the same nodes; empty for none."""
    out = [
        {
            "node": one.node,
            "uid": one.uid,
            "zone": one.zone,
            "pool": one.pool,
            "have": one.have,
            "at": to_text(one.at),
        }
        for one in replaced
    ]
    return json.dumps(out, sort_keys=True, separators=(",", ":")) if out else ""


def load(text: str | None) -> tuple[Replaced, ...]:
    """Parse the text. An empty or invalid text results in none."""
    if not text:
        return ()
    try:
        return tuple(
            Replaced(
                node=str(one["node"]),
                uid=str(one["uid"]),
                zone=str(one["zone"]),
                pool=str(one["pool"]),
                have=int(one["have"]),
                at=from_text(one["at"]),
            )
            for one in json.loads(text)
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("which nodes were replaced can't be read, and is forgotten: error=%r", error)
        return ()
