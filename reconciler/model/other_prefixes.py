"""The prefixes under which nodes have what a reconciler, or a command of it, has written."""

from __future__ import annotations

from reconciler.model.instructions import hold_of
from reconciler.model.keys import keys_of
from reconciler.model.limits import EARLIEST
from reconciler.model.node import Node
from reconciler.model.record import Record
from reconciler.model.record_text import record_of

_NONE = keys_of("")
_INSTRUCTIONS = (_NONE.hold, _NONE.hold_of_many, _NONE.defer, _NONE.approved)
_SIGNS = (_NONE.record, _NONE.workflow_state, *_INSTRUCTIONS)

NAMES = frozenset(key.removeprefix("/") for key in _SIGNS)
"""The names of the keys that show a prefix, for `Wanted`."""


def other_prefixes(node: Node, prefix: str) -> tuple[str, ...]:
    """Return the prefixes other than `prefix` that are in use on a node, sorted.

    Many programs have keys with names such as `hold`. So an annotation counts if it is the record of the
    node, or an instruction with its giver.
    """
    found = {
        key.removesuffix(_NONE.workflow_state) for key in node.labels if key.endswith(_NONE.workflow_state)
    }
    for key, text in node.annotations.items():
        place, slash, name = key.rpartition("/")
        if slash + name == _NONE.record and isinstance(record_of(node, place), Record):
            found.add(place)
        elif slash + name in _INSTRUCTIONS:
            said = hold_of(text, EARLIEST)
            if said is not None and said.word.by:
                found.add(place)
    return tuple(sorted(found - {prefix}))
