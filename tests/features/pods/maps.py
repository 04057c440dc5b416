"""A server with the ConfigMaps of namespaces, for tests of what is kept and published."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.patches import answer_patch
from tests.support.stub import Answer, Asked, StubMaker, json_answer, status

Object = dict[str, Any]


class Maps:
    """The ConfigMaps by namespace and name, and a connection to them that never really sleeps.

    `refuse` may give another answer to a request. `missing` are namespaces that do not exist.
    """

    def __init__(self, stub: StubMaker) -> None:
        """Serve none."""
        self.all: dict[tuple[str, str], Object] = {}
        self.missing: set[str] = set()
        self.refuse: Callable[[Asked], Answer | None] = lambda asked: None
        self.stub, self.connection = stub(self._answer)

    def writes(self) -> list[str]:
        """The methods and namespaces of all writes so far, in their order."""
        asked = [each for each in self.stub.asked if each.method != "GET"]
        return [f"{each.method} {each.path.split('/')[4]}" for each in asked]

    def data(self, namespace: str, name: str) -> dict[str, str]:
        """The data of one."""
        found: dict[str, str] = self.all[namespace, name]["data"]
        return found

    def _answer(self, asked: Asked) -> Answer:
        if (said := self.refuse(asked)) is not None:
            return said
        _, _, _, _, namespace, _, *names = asked.path.split("/")
        if asked.method == "POST":
            if namespace in self.missing:
                return status(404, "NotFound", f'namespaces "{namespace}" not found')
            made = json.loads(asked.body)
            key = namespace, made["metadata"]["name"]
            if key in self.all:
                return status(409, "AlreadyExists", "it exists")
            made["metadata"] |= {"uid": f"uid-{namespace}", "resourceVersion": str(asked.number)}
            self.all[key] = made
            return json_answer(made, 201)
        found = self.all.get((namespace, names[0]))
        if found is None:
            return status(404, "NotFound", "no")
        if asked.method == "PATCH":
            said = answer_patch(found, asked)
            found["metadata"]["resourceVersion"] = str(asked.number)
            return json_answer(found) if said.status == 200 else said
        if asked.method == "DELETE":
            return json_answer(self.all.pop((namespace, names[0])))
        return json_answer(found)
