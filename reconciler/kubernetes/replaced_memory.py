"""The nodes whose replacements may still be missing, as text for our ConfigMap.

A text that can't be read counts as none: these nodes then stop holding budget places.
"""

from __future__ import annotations

import json
import logging

from reconciler.model import limits
from reconciler.model.moments import from_text, to_text
from reconciler.model.snapshot import Replaced

log = logging.getLogger(__name__)


def dump(replaced: tuple[Replaced, ...]) -> str:
    """Return them as text, empty for none. Equal nodes give equal texts."""
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
                node=limits.text(str(one["node"]), limits.NAME),
                uid=limits.text(str(one["uid"]), limits.NAME),
                zone=limits.text(str(one["zone"]), limits.NAME),
                pool=limits.text(str(one["pool"]), limits.NAME),
                have=limits.count(one["have"]),
                at=from_text(one["at"]),
            )
            for one in limits.loads(text, limits.LEDGER)
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("which nodes were replaced can't be read, and is forgotten: error=%r", error)
        return ()
