"""What people say of nodes as they were read, so that whoever keeps it sees it come, change and go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.model.ended_case import case_start
from reconciler.model.instructions import Word, hold_of, instructions_of, unverified
from reconciler.model.keys import keys_of
from reconciler.model.limits import EARLIEST
from reconciler.model.node import Node
from reconciler.model.problems import internal
from reconciler.model.record import Record
from reconciler.model.sayings import EVERYTHING, NodeSayings, Saying, mark_of
from reconciler.model.values import replace
from reconciler.passes.node_facts import DEFAULT, PassContext
from reconciler.passes.parts import Parts


def sayings(context: PassContext, parts: Parts) -> Mapping[str, NodeSayings | None]:
    """Return all that people say of each node, by its name; None if that is not known, or not ours to know.

    Nodes of which nobody says anything are left out, as those are that rest.
    """
    known: dict[str, NodeSayings | None] = {}
    for node in context.snapshot.nodes:
        said: NodeSayings | None = None
        try:
            # Almost all nodes: what people say is in annotations.
            if not node.annotations and node.name not in context.snapshot.records:
                continue
            said = _of_node(node, context, parts)
        except Exception as error:  # noqa: BLE001 - one node's data harms that node only
            internal(f"what people say of node {node.name} is not known", error)
        if said is None or said.said:
            known[node.name] = said if context.settings.in_fleet(node.labels) else None
    return known


def _of_node(node: Node, context: PassContext, parts: Parts) -> NodeSayings:
    record, prefix = context.snapshot.records.get(node.name), context.keys.prefix
    record = record if isinstance(record, Record) else None
    said = (*_of_core(node, record, prefix), *parts.sayings(node, prefix))
    case = record.case(DEFAULT) if said and record is not None else None
    start = case_start(case) if case is not None and case.open else None
    return NodeSayings(node.name, node.uid, said, start)


def _of_core(node: Node, record: Record | None, prefix: str) -> Iterator[Saying]:
    """Yield the instructions, also those whose time is over, what people have ended, and a drain by hand."""
    if record is not None and record.claimed_by and record.drain is not None:
        word = Word(record.claimed_by, record.drain.drain.since)
        yield Saying("drain", "drained by hand", word, str(word), "drain by hand ended")
    keys, texts = keys_of(prefix), node.annotations
    if texts.keys().isdisjoint(keys.instructions):
        return

    def mark(key: str) -> str:
        return mark_of(texts[key])

    said = instructions_of(node, prefix, EARLIEST)
    # The copy of a hold of many nodes is said by the ledger.
    hold = hold_of(texts[keys.hold], EARLIEST) if keys.hold in texts else None
    if hold is not None:
        yield Saying("hold", "held", hold.word, mark(keys.hold), "hold ended")
    if said.deferral is not None:
        yield Saying("defer", "deferred", said.deferral.word, mark(keys.defer), "deferral ended")
    for given in said.permissions:
        kind, key = given.kind, f"{prefix}/{given.kind.name}"
        yield Saying(kind.name, kind.done, given.word, mark(key), f"{kind.noun} ended", with_case=True)
    last = said.before[-1].by if said.before else ""
    for ended in said.before:
        if ended.done:
            # Admission policies look at the last one only.
            word = ended.end if ended.by == last else replace(ended.end, by=unverified(ended.by))
            name = f"ended {mark_of(str(ended))}"
            yield Saying(name, ended.done, word, "", ends=ended.did or EVERYTHING)
