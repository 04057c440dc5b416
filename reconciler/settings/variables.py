"""`${NAME}` in values of a file that maintenance-controller could read: replaced by environment variables.

It knows the forms of maintenance-controller: `${NAME}`, `${NAME:default}` and `${NAME:?message}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from reconciler.model import limits
from reconciler.settings.mistakes import Mistake, Path
from reconciler.settings.yaml import plain

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.]*)(?::(\?)?([^}]*))?\}")


def with_variables(
    value: object, environment: Mapping[str, str], path: Path = ()
) -> tuple[object, tuple[Mistake, ...]]:
    """Return the value with its variables replaced, and a mistake for each one that is not set.

    A value that is a single variable gets the type of its content, as if it were written in the file. No
    message has the content of a variable, because it may be a secret.
    """
    mistakes: list[Mistake] = []
    return _replaced(value, environment, path, mistakes), tuple(mistakes)


def _replaced(value: object, environment: Mapping[str, str], path: Path, mistakes: list[Mistake]) -> object:
    if isinstance(value, dict):
        return {key: _replaced(one, environment, (*path, key), mistakes) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, environment, (*path, place), mistakes) for place, one in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    missing = tuple(_missing(value, environment, path))
    if missing:
        mistakes += missing
        return value
    text = _VARIABLE.sub(lambda found: _content(found, environment), value)
    if len(text) > limits.ANNOTATION:
        mistakes.append(Mistake(path, f"is longer than {limits.ANNOTATION} characters with its variables"))
        return value
    return plain(text) if _VARIABLE.fullmatch(value) else text


def _missing(value: str, environment: Mapping[str, str], path: Path) -> Iterator[Mistake]:
    for found in _VARIABLE.finditer(value):
        name, asks, default = found.groups()
        if name in environment or (default is not None and not asks):
            continue
        why = f": {default}" if asks and default else ""
        remedy = f"set it, or write ${{{name}:default}}"
        yield Mistake(path, f"the environment variable {name} is not set{why}; {remedy}")


def _content(found: re.Match[str], environment: Mapping[str, str]) -> str:
    name, asks, default = found.groups()
    # A Secret often ends with the end of a line.
    return environment.get(name, "" if asks else default or "").rstrip("\r\n")
