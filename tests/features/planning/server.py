"""A server at which nodes and pods may be listed, and nothing else may be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.stub import Answer, Asked, Stub, json_answer, status

PERMITTED = {"/api/v1/nodes": "NodeList", "/api/v1/pods": "PodList"}


def serving(nodes: Sequence[dict[str, Any]] = ()) -> Stub:
    """Start a server with these nodes and no pods; close it after use."""

    def answer(asked: Asked) -> Answer:
        if asked.path not in PERMITTED:
            return status(403, "Forbidden", "no")
        items = list(nodes) if asked.path == "/api/v1/nodes" else []
        listed = {"kind": PERMITTED[asked.path], "apiVersion": "v1", "items": items}
        return json_answer({**listed, "metadata": {"resourceVersion": "1"}})

    return Stub(answer)
