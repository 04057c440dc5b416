"""Documents of others: a key counts in each spelling that tools write, and none is lost in silence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.calendar.values import literal, near


def _folded(key: object) -> str:
    return re.sub("[_-]", "", str(key)).casefold()


def has_key(document: Mapping[str, Any], key: str) -> bool:
    """Whether a document has the key, in camel, Pascal or snake case."""
    return key in document or any(_folded(name) == _folded(key) for name in document)


def value_of(document: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key in camel, Pascal or snake case, None if there is none."""
    if key in document:
        return document[key]
    wanted = _folded(key)
    return next((value for name, value in document.items() if _folded(name) == wanted), None)


def known_keys(
    document: Mapping[str, Any], known: Iterable[str], path: str, places: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the values of a document by the known keys, in whatever case they are written.

    A key without a value says nothing. Any other unknown one may be a limit that is misspelt or in a wrong
    place, and so may a key that is there twice. Raises ValueError with its place. `path` is that of the
    document, and `places` says where other keys belong.
    """
    names, values = {_folded(name): name for name in known}, dict[str, Any]()
    homes = {_folded(name): place for name, place in (places or {}).items()}
    for key, value in document.items():
        if value is None:
            continue
        here, name = f"{path}.{key}".lstrip("."), names.get(_folded(key))
        if name is None:
            home = homes.get(_folded(key))
            keys = list(names.values())
            hint = f"; it belongs in {home}" if home else near(str(key), keys)
            hint = hint or f"; the keys here are {', '.join(keys)}"
            raise ValueError(f"{here}: unknown key{hint}")
        if name in values:
            raise ValueError(f"{here}: {name} is there twice, and one of them is {literal(values[name])}")
        values[name] = value
    return values
