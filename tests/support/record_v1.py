"""Records as the program of version 1 wrote them."""

from __future__ import annotations

import json

from reconciler.model.record import Record, to_annotation


def as_version_1(record: Record) -> str:
    """The text that a program of version 1 would have written of the same case of its one profile."""
    document = json.loads(to_annotation(record))
    cordon, drain = document.pop("cordon", None), document.pop("drain", None)
    mine = document["profiles"]["default"]
    case = {key: mine.pop(key) for key in tuple(mine) if key not in ("state", "since")}
    dismissed = case.pop("dismissed", None)
    case["cordon"] = cordon["whose"] if cordon else "none"
    if drain:
        case["drain"] = {key: drain[key] for key in drain if key != "claims"}
    document |= {"version": 1, "case": case}
    if dismissed:
        document["dismissed"] = dismissed
    return json.dumps(document, sort_keys=True, separators=(",", ":"))
