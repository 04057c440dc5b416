"""Loads the settings from a file, or reports every mistake at once with its line and column."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from reconciler.calendar.values import literal, near
from reconciler.errors import SettingsError
from reconciler.model.limits import LARGEST_SETTINGS
from reconciler.model.settings_version import SettingsVersion, short_hash
from reconciler.settings.mistakes import Mistake, Mistakes, Path
from reconciler.settings.schema import Settings
from reconciler.settings.tree import keys_at
from reconciler.settings.yaml import Place, read_yaml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def load_settings(path: FilePath, now: datetime | None = None) -> Settings:
    """Return the settings in a file, with their version: loaded `now` (aware; None: not known).

    Raises SettingsError with every mistake, or if the file can't be read.
    """
    try:
        data = read_settings(path)
    except OSError as error:
        raise SettingsError((f"{path}:1:1: can't be read: {error.strerror or error}",)) from error
    return parse_content(data, str(path), now)


def read_settings(path: FilePath) -> bytes:
    """Return the content of a settings file, cut one byte above the limit. Raises OSError."""
    with path.open("rb") as file:
        return file.read(LARGEST_SETTINGS + 1)


def parse_content(data: bytes, name: str, now: datetime | None = None) -> Settings:
    """Return the settings in the content of the file `name`, with their version, loaded `now` (aware).

    Raises SettingsError with every mistake.
    """
    if len(data) > LARGEST_SETTINGS:
        raise SettingsError((f"{name}:1:1: is larger than {LARGEST_SETTINGS} bytes",))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise SettingsError((f"{name}:{line}:{column}: is not UTF-8 text",)) from error
    return parse_settings(text, name).with_version(SettingsVersion(short_hash(data), now))


def parse_settings(text: str, name: str) -> Settings:
    """Return the settings in a text. Raises SettingsError with every mistake, in the file `name`."""
    document = read_yaml(text)
    found = list(document.mistakes)
    value = {} if document.value is None else document.value
    settings: Settings | None = None
    if isinstance(value, dict):
        found += [(document.place(mistake.path), mistake) for mistake in _named_twice(value)]
        try:
            settings = Settings.model_validate(value, by_alias=True, by_name=False)
        except ValidationError as error:
            found += [
                (document.place(mistake.path), mistake)
                for details in error.errors(include_url=False)
                for mistake in _mistakes(details)
            ]
    elif not found:
        found.append(((1, 1), Mistake((), f"{literal(value)} is not a mapping of keys to values")))
    if settings is None or found:
        raise SettingsError(tuple(dict.fromkeys(_line(name, *each) for each in sorted(found, key=_order))))
    return settings


def _order(found: tuple[Place, Mistake]) -> Place:
    return found[0]


def _line(name: str, place: Place, mistake: Mistake) -> str:
    key = _spelt(mistake.path)
    return f"{name}:{place[0]}:{place[1]}: {f'{key}: ' if key else ''}{mistake.message}"


def _spelt(path: Path) -> str:
    """Return a path as Kubernetes writes it: `windows[1].start`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _named_twice(value: dict[str, object]) -> Iterator[Mistake]:
    """Yield entries of one list with the same name, even if other mistakes make the list invalid."""
    drain = value.get("drain")
    lists: list[tuple[Path, object]] = [((key,), value.get(key)) for key in ("windows", "notAllowed")]
    lists.append((("drain", "rules"), drain.get("rules") if isinstance(drain, dict) else None))
    for path, entries in lists:
        seen: dict[str, int] = {}
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            name = entry.get("name") if isinstance(entry, dict) else None
            if not isinstance(name, str):
                continue
            if name in seen:
                first = _spelt((*path, seen[name]))
                message = f"{literal(name)} is also the name of {first}; names are unique"
                yield Mistake((*path, index, "name"), message)
            seen.setdefault(name, index)


def _mistakes(details: ErrorDetails) -> Iterator[Mistake]:
    """Convert an error of pydantic, with messages for the author of the file."""
    # pydantic reports an invalid key of a mapping as `key.[key]`.
    path: Path = tuple(part for part in details["loc"] if part != "[key]")
    context: dict[str, Any] = details.get("ctx") or {}
    error = context.get("error")
    if isinstance(error, Mistakes):
        for mistake in error.mistakes:
            yield Mistake((*path, *mistake.path), mistake.message)
    elif isinstance(error, ValueError):
        yield Mistake(path, str(error))
    else:
        yield Mistake(path, _words(details, path))


def _words(details: ErrorDetails, path: Path) -> str:
    given = details["input"]
    match details["type"]:
        case "extra_forbidden":
            known = sorted(keys_at(Settings, path[:-1]))
            word = str(path[-1])
            hint = near(word, known) or f"; the keys here are {', '.join(known)}"
            return f"unknown key{hint}"
        case "missing":
            return "is missing"
        case "enum" | "literal_error":
            words = _choices(details)
            return f"{literal(given)} is not one of {', '.join(words)}{near(str(given), words)}"
        case "bool_type":
            meant = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
            word = str(given).lower()
            word = meant.get(word, word if word in ("true", "false") else "")
            return f"{literal(given)} is neither true nor false" + (f"; did you mean {word}?" if word else "")
        case "string_type":
            return f"{literal(given)} is not text" + ("" if given is None else "; write it in quotes")
        case "int_type" | "int_parsing":
            return f"{literal(given)} is not a whole number"
        case "tuple_type" | "list_type":
            example = "a, b" if given is None else literal(given)
            return f"{literal(given)} is not a list; write it like [{example}]"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{literal(given)} is not a mapping of keys to values"
    return details["msg"]


def _choices(details: ErrorDetails) -> list[str]:
    """Return the choices in pydantic's text `'Observe', 'Enforce' or 'Finish'`."""
    expected = str((details.get("ctx") or {}).get("expected", ""))
    return [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",")]
