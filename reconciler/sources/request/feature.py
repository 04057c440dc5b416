"""Requests as words of people: who has requested maintenance of a node, until that is gone."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.event import REQUEST
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.sayings import Saying, mark_of
from reconciler.passes.plugin import Feature
from reconciler.sources.request.source import REQUESTED, word_of


def _bears(node: Node, prefix: str) -> bool:
    return keys_of(prefix).request in node.annotations


def _sayings(node: Node, prefix: str) -> Iterator[Saying]:
    text = node.annotations.get(keys_of(prefix).request)
    if text is not None:
        yield Saying(REQUEST, REQUESTED, word_of(text), mark_of(text), "request ended")


FEATURE = Feature("requests", sayings=_sayings, bears_signs=_bears)
