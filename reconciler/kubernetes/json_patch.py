"""JSON Patch (RFC 6902): changes of an object, and what has to be as it was read for them.

A patch that names the resourceVersion is refused if anybody has changed anything of the object. One that
names no version is applied by the API server again and again to the newest object, until nobody wrote in
between. With `test` operations it still happens only where what it depends on has not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reconciler.kubernetes.connection import JSON, JSON_PATCH, ApiPath, Connection, Request
from reconciler.kubernetes.objects import is_denied
from reconciler.model.errors import Conflict, Rejected

INVALID = 422

# The API server compares texts as Go encodes them.
_AS_GO_ENCODES = {
    b"<": rb"\u003c",
    b">": rb"\u003e",
    b"&": rb"\u0026",
    "\u2028".encode(): rb"\u2028",
    "\u2029".encode(): rb"\u2029",
}


class Patch:
    """The operations of one patch: first the tests, then the changes.

    A path is a tuple of names. None is the value of what is not there: for the API server, this test passes
    where the object around it exists.
    """

    def __init__(self, uid: str, version: str = "") -> None:
        """Begin a patch of the object with this UID.

        With a `version`, the resourceVersion is tested in place of all that is expected.
        """
        self._version = version
        self._tests = [_operation("test", ("metadata", "uid"), value=uid)]
        self._changes: list[dict[str, Any]] = []
        if version:
            self._tests.append(_operation("test", ("metadata", "resourceVersion"), value=version))

    @property
    def changes_something(self) -> bool:
        """Whether there is any change."""
        return bool(self._changes)

    @property
    def body(self) -> msgspec.Raw:
        """The body of the request."""
        encoded = msgspec.json.encode([*self._tests, *self._changes])
        for text, escaped in _AS_GO_ENCODES.items():
            encoded = encoded.replace(text, escaped)
        return msgspec.Raw(encoded)

    def expect(self, value: object, *path: str) -> None:
        """Expect this value; None for what is not there."""
        if not self._version:
            self._tests.append(_operation("test", path, value=value))

    def put(self, value: object, *path: str) -> None:
        """Add or replace a value in an object that exists."""
        self._changes.append(_operation("add", path, value=value))

    def change_texts(
        self,
        known: Mapping[str, str | None],
        changes: Mapping[str, str | None],
        *path: str,
        exists: bool = True,
    ) -> None:
        """Change texts by their keys, such as labels. None removes one.

        What is `known` is expected, None for a key that is not there. `exists` is whether the object of the
        texts does.
        """
        if not exists:
            self.expect(None, *path)
            added = {key: text for key, text in changes.items() if text is not None}
            if added:
                self.put(added, *path)
            return
        for key, text in known.items():
            self.expect(text, *path, key)
        for key, text in changes.items():
            if text is not None:
                self.put(text, *path, key)
            elif key not in known:
                # Only what is there can be removed.
                self.put("", *path, key)
                self._changes.append(_operation("remove", (*path, key)))
            elif known[key] is not None:
                self._changes.append(_operation("remove", (*path, key)))

    def change_list(self, before: Sequence[Any], after: Sequence[Any], *path: str) -> None:
        """Remove the items of a list that are not in `after`, and add those that are new.

        Others of its items may come or go. Of an item that is an object, the fields that are given are
        expected, None for one that is not there.
        """
        added = [_without_nulls(item) for item in after if item not in before]
        if not before:
            if added:
                self.expect(None, *path)
                self.put(added, *path)
            return
        # From the end: the places of the others stay.
        for place, item in reversed([*enumerate(before)]):
            if item in after:
                continue
            fields = item.items() if isinstance(item, dict) else ()
            for name, value in fields:
                self.expect(value, *path, str(place), name)
            if not fields:
                self.expect(item, *path, str(place))
            self._changes.append(_operation("remove", (*path, str(place))))
        for item in added:
            self.put(item, *path, "-")


def send_patch(
    connection: Connection,
    path: ApiPath,
    patch: Patch,
    query: Mapping[str, str] | None = None,
    accept: str = JSON,
) -> bytes:
    """Send the patch, and return the answer; the errors of ClusterError.

    Raises Conflict with status 422 if a test may have failed: the API server does not say more. What an
    object may not contain has causes, and is Rejected, as is what an admission policy denies.
    """
    # The paths are right: without their check, the API server takes no longer than for a strategic patch.
    query = {"fieldValidation": "Ignore", **(query or {})}
    request = Request("PATCH", path, query=query, body=patch.body, content_type=JSON_PATCH, accept=accept)
    try:
        return connection.send(request)
    except Rejected as error:
        if error.status != INVALID or error.causes or is_denied(error):
            raise
        raise Conflict(str(error), status=error.status) from error


def _operation(kind: str, path: Sequence[str], **value: object) -> dict[str, Any]:
    names = (name.replace("~", "~0").replace("/", "~1") for name in path)
    return {"op": kind, "path": "".join(f"/{name}" for name in names), **value}


def _without_nulls(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    return {name: value for name, value in item.items() if value is not None}
