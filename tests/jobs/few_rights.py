"""An API server without nodes, at which we may list nodes and pods only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.stub import Answer, Asked, Stub, json_answer, status

PERMITTED = {"/api/v1/nodes": "NodeList", "/api/v1/pods": "PodList"}


@dataclass
class Answers:
    """A server, and what it returns besides lists without items, by path."""

    kubeconfig: Path
    extra: dict[str, Any] = field(default_factory=dict)


@contextmanager
def server(folder: Path) -> Iterator[Answers]:
    """A server with no nodes, at which we may list nodes and pods only."""

    def answer(asked: Asked) -> Answer:
        if asked.path in PERMITTED:
            listed = {"kind": PERMITTED[asked.path], "apiVersion": "v1", "items": []}
            return json_answer({**listed, "metadata": {"resourceVersion": "1"}})
        if asked.path in made.extra:
            return json_answer(made.extra[asked.path])
        return status(403, "Forbidden", "no")

    stub = Stub(answer)
    made = Answers(stub.write_kubeconfig(folder / "kubeconfig"))
    try:
        yield made
    finally:
        stub.close()
