"""Patches as the API server applies them, for servers of tests."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from tests.support.stub import Answer, Asked, json_answer, status

Object = dict[str, Any]


class RefusedError(Exception):
    """A test failed, or a path does not exist."""


def refused() -> Answer:
    """As the API server answers: it does not say which test failed."""
    return status(422, "Invalid", "the server rejected our request due to an error in our request")


def answer_patch(found: Object, asked: Asked) -> Answer:
    """Change the object as the request says, and answer it."""
    try:
        after = patched(found, json.loads(asked.body))
    except RefusedError:
        return refused()
    found.clear()
    found.update(after)
    return json_answer(found)


def patched(document: Object, patch: Any) -> Object:
    """The document after a JSON Patch, if the patch is a list, or a merge patch.

    A test of null passes for what is not in an object that is there.
    """
    if isinstance(patch, dict):
        return _merged(document, patch)
    after = deepcopy(document)
    for operation in patch:
        *names, last = (
            name.replace("~1", "/").replace("~0", "~") for name in operation["path"].split("/")[1:]
        )
        inside: Any = after
        for name in names:
            inside = _value(inside, name)
        if not isinstance(inside, dict | list):
            raise RefusedError(operation["path"])
        _apply(inside, last, operation)
    # The API server leaves it out.
    if after.get("spec", {}).get("unschedulable") is False:
        del after["spec"]["unschedulable"]
    return after


def _merged(before: Object, patch: Object) -> Object:
    after = deepcopy(before)
    for key, value in patch.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = _merged(after.get(key) or {}, value) if isinstance(value, dict) else value
    return after


def _value(inside: Any, name: str) -> Any:
    if isinstance(inside, dict):
        return inside.get(name)
    if isinstance(inside, list) and name.isdecimal() and int(name) < len(inside):
        return inside[int(name)]
    raise RefusedError(name)


def _apply(inside: Object | list[Any], name: str, operation: Object) -> None:
    kind, value = operation["op"], operation.get("value")
    if kind == "test":
        if _value(inside, name) != value:
            raise RefusedError(operation["path"])
    elif kind == "add" and isinstance(inside, list):
        inside.insert(len(inside) if name == "-" else int(name), value)
    elif kind in ("add", "replace") and isinstance(inside, dict):
        inside[name] = value
    elif kind == "remove" and _value(inside, name) is not None:
        del inside[int(name) if isinstance(inside, list) else name]  # type: ignore[arg-type]
    else:
        raise RefusedError(operation["path"])
