"""What the tests of plugins give to tests of all, which import no plugin."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.node import Node
from reconciler.plugins import names
from reconciler.run import PARTS
from reconciler.settings.schema import Settings


def from_tests(file: str, value: str) -> Iterator[Any]:
    """Yield this value of the file of this name in the folder of each plugin's tests, if it has one."""
    for name in (f"tests.{room}.{plugin}" for room in ("features", "sources") for plugin in names(room)):
        if find_spec(name) is not None and find_spec(f"{name}.{file}") is not None:
            module = import_module(f"{name}.{file}")
            if hasattr(module, value):
                yield getattr(module, value)


def annotations_of_signs() -> frozenset[str]:
    """Return the annotations of nodes by which features show a case, under keys of other programs."""
    keys = PARTS.wants(Settings()).annotations
    # The owner of such an annotation is the installation with our prefix.
    node = Node("a", "uid-a", "1", annotations=dict.fromkeys(keys, DEFAULT_PREFIX))
    return frozenset(PARTS.removed(node, DEFAULT_PREFIX).annotations)
