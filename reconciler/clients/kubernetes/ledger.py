"""The ledger as the data of its ConfigMap.

A polled source's memory and the replaced nodes only save work: a text that can't be read is dropped with a
warning. The last start keeps the spacing between drains, so one that can't be read is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from reconciler.clients.kubernetes import replaced_memory
from reconciler.errors import SourceError
from reconciler.model.moments import from_text, to_text
from reconciler.model.polling import AnyMemory, Memory
from reconciler.model.snapshot import Ledger
from reconciler.sources.registry import polled

log = logging.getLogger(__name__)

LAST_START = "lastStart"
REPLACED = "replaced"


def from_data(data: Mapping[str, str]) -> Ledger:
    """Return the ledger; ValueError where its last start can't be read."""
    text = data.get(LAST_START)
    return Ledger(
        last_start=from_text(text) if text else None,
        memories=_memories(data),
        replaced=replaced_memory.load(data.get(REPLACED)),
    )


def to_data(ledger: Ledger, before: Mapping[str, str]) -> dict[str, str]:
    """Return the data to merge over what was there `before`; keys of others stay as they are."""
    memories = {source.name: source.dump(ledger.memories.get(source.name, Memory())) for source in polled()}
    data = {
        LAST_START: to_text(ledger.last_start) if ledger.last_start else "",
        **memories,
        REPLACED: replaced_memory.dump(ledger.replaced),
    }
    return {key: text for key, text in data.items() if text or key in before}


def _memories(data: Mapping[str, str]) -> dict[str, AnyMemory]:
    memories: dict[str, AnyMemory] = {}
    for source in polled():
        try:
            memory = source.load(data.get(source.name, ""))
        except SourceError as error:
            log.warning("%s, so it is asked again: source=%s", error, source.name)
            continue
        if memory != Memory():
            memories[source.name] = memory
    return memories
