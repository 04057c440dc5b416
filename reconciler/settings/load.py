"""Loads the settings from a file, or reports every mistake at once with its line and column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from reconciler.calendar.values import literal
from reconciler.model import limits
from reconciler.model.content import SettingsVersion, short_hash
from reconciler.model.errors import SettingsError
from reconciler.model.limits import LARGEST_SETTINGS
from reconciler.model.values import replace
from reconciler.settings.mistakes import ChangedScalar, Mistake, Path, Place, keys_at, mistakes_of, spelt
from reconciler.settings.originals import Translation, original_of
from reconciler.settings.schema import Origin, Settings, whole_settings
from reconciler.settings.yaml import plain, read_go_yaml, read_yaml, unlike

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

PREFIX = "cloud.sap"
"""The prefix of maintenance-controller's labels and annotations."""

_OURS = ("apiVersion", "kind", "mode")


def _is_of_features(path: Path) -> bool:
    """Whether features add keys of their own to the section at this path of a file."""
    meanings = path[2:] if path[:1] == ("overrides",) else path
    of_policy = len(meanings) == 2 and meanings[0] in ("events", "conditions")
    return of_policy or path in ((), ("sources",), ("drain",))


def _alone() -> dict[str, Any]:
    """Return settings that act and keep labels as maintenance-controller does, and read no maintenance."""
    off = {name: {"enabled": False} for name in keys_at(whole_settings(), ("sources",))}
    return {"mode": "Enforce", "keys": {"prefix": PREFIX}, "sources": off}


def _translated(value: Mapping[str, Any]) -> Translation | None:
    """Return what a file says that a feature knows, None for any other."""
    original = original_of(value)
    if original is None:
        return None
    found = original.translate(value)
    base = _alone()
    sources = {**base["sources"], **found.settings.get("sources", {})}
    return replace(found, settings={**base, **found.settings, "sources": sources})


def load_settings(
    path: FilePath, now: datetime | None = None, environment: Mapping[str, str] = NO_VARIABLES
) -> Settings:
    """Return the settings in a file, with their version: loaded `now` (aware; None: not known).

    `environment` has the variables for `${NAME}`. Raises SettingsError with every mistake, or if
    the file can't be read.
    """
    return parse_content(content_of(path), str(path), now, environment, folder=path.parent)


def content_of(path: FilePath) -> bytes:
    """Return what `read_settings` does. Raises SettingsError if the file can't be read."""
    try:
        return read_settings(path)
    except OSError as error:
        raise SettingsError((f"{path}: can't be read: {error.strerror or error}",)) from error


def read_settings(path: FilePath) -> bytes:
    """Return the content of a settings file, cut one byte above the limit. Raises OSError."""
    with path.open("rb") as file:
        return file.read(LARGEST_SETTINGS + 1)


def parse_content(
    data: bytes,
    name: str,
    now: datetime | None = None,
    environment: Mapping[str, str] = NO_VARIABLES,
    *,
    folder: FilePath | None = None,
) -> Settings:
    """Return the settings in the content of the file `name`, with their version, loaded `now` (aware).

    `folder` is that of the file, where relative paths begin; None if it is no file. Raises SettingsError with
    every mistake.
    """
    if len(data) > LARGEST_SETTINGS:
        raise SettingsError((f"{name}:1:1: is larger than {LARGEST_SETTINGS} bytes",))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise SettingsError((f"{name}:{line}:{column}: is not UTF-8 text",)) from error
    settings = parse_settings(text, name, environment)
    version = SettingsVersion(short_hash(data), now)
    where = folder and folder.absolute()
    return settings.read_from(replace(settings.origin, version=version, folder=where, content=data))


def calendar_mistakes(data: bytes, name: str, settings: Settings, wrong: Mapping[str, str]) -> SettingsError:
    """Return the error about calendars whose content is wrong, with the places of their keys in the file.

    `data` is the content of the file `name`, and `wrong` says what is wrong with each calendar, by its name.
    """
    document = read_yaml(data.decode("utf-8-sig"))
    return SettingsError(
        tuple(
            _line(name, document.place(place.key_path), Mistake(place.key_path, wrong[place.name]))
            for place in settings.calendar_places()
            if place.name in wrong
        )
    )


def instead_of_rejected(error: SettingsError) -> Settings:
    """Return what shows announced maintenance where the settings can't be used: nobody acts by them."""
    return parse_settings("", "").read_from(Origin(rejected="; ".join(error.mistakes)))


def parse_settings(text: str, name: str, environment: Mapping[str, str] = NO_VARIABLES) -> Settings:
    """Return the settings in a text. Raises SettingsError with every mistake, in the file `name`.

    A file of another program that a feature knows gives what it says here and nothing else, and its YAML
    means what it means there. `environment` has the variables for `${NAME}` in sections of another form.
    """
    theirs = read_go_yaml(text)
    keys = theirs.value if isinstance(theirs.value, dict) else {}
    forms = {part.key: part.form for part in whole_settings().of_features if part.form is not None}
    ours = any(key in keys for key in _OURS)
    translated = None if ours else _translated(keys)
    alone = "" if ours or translated else next((key for key, form in forms.items() if form.is_file(keys)), "")
    document = theirs if alone or translated is not None else read_yaml(text)
    found = list(document.mistakes)
    value = {} if document.value is None else document.value
    settings: Settings | None = None
    if isinstance(value, dict) and value.get("kind") == "ConfigMap":
        found.append((document.place(("kind",)), Mistake(("kind",), _manifest(value))))
    elif isinstance(value, dict):
        written = {change.path: change for change in document.changed}

        def in_file(mistake: Mistake) -> tuple[Place, Mistake]:
            path = mistake.path[1:] if mistake.path[:1] == (alone,) else mistake.path
            if translated is not None:
                path = translated.place_of(path)
            message = mistake.message
            if path in written:
                # The message has the value that YAML makes of it, and may say how to write it in quotes.
                read = rf"(?<![\w.]){re.escape(written[path].read)}(?![\w.])"
                message = re.sub(read, lambda _: written[path].written, message)
            return document.place(path), Mistake(path, message)

        sections = {**_alone(), alone: dict(value)} if alone else value
        if translated is not None:
            sections = translated.settings
            found += [(document.place(each.path), each) for each in translated.mistakes]
        found += [in_file(mistake) for mistake in _named_twice(sections)]
        for key in forms.keys() & sections.keys():
            content, unset = with_variables(sections[key], environment, (key,))
            sections = {**sections, key: content}
            found += [in_file(mistake) for mistake in unset]
        try:
            settings = whole_settings().model_validate(sections, by_alias=True, by_name=False)
        except ValidationError as error:
            known = partial(keys_at, whole_settings())
            secret = [part.key for part in whole_settings().of_features if part.secret]
            found += [
                in_file(mistake)
                for details in error.errors(include_url=False)
                for mistake in mistakes_of(details, known, _is_of_features, secret)
            ]
            # What needs several keys is checked only once each of them is valid.
            found += [
                in_file(Mistake((key, *mistake.path), mistake.message))
                for key, form in forms.items()
                for mistake in form.mistakes(sections.get(key))
            ]
            found += map(in_file, _out_of_order(sections))
        if settings is not None and translated is not None:
            meanings = [
                (document.place(path), f"{spelt(path)} {words}") for path, words in translated.meanings
            ]
            lines = tuple(f"{name}:{line}: {words}" for (line, _), words in sorted(meanings))
            settings = settings.read_from(Origin(meanings=lines, block=translated.block))
        elif settings is not None and isinstance(theirs.value, dict):
            read: list[tuple[Path, str]] = []
            changed: list[ChangedScalar] = []
            for key in (alone,) if alone else forms:
                if not alone:
                    read += unlike(value.get(key), theirs.value.get(key), (key,), forms[key].secret)
                outer = () if alone else (key,)
                # What is a number or a boolean for its key is as it is meant; what is a text may not be.
                changed += (
                    change
                    for change in document.changed
                    if change.path[: len(outer)] == outer
                    and change.read in forms[key].texts(getattr(settings, key), change.path[len(outer) :])
                )
            settings = settings.read_from(
                Origin(foreign=bool(alone), unlike=tuple(read), changed=tuple(changed))
            )
    elif not found:
        found.append(((1, 1), Mistake((), f"{literal(value)} is not a mapping of keys to values")))
    if settings is None or found:
        raise SettingsError(tuple(dict.fromkeys(_line(name, *each) for each in sorted(found, key=_order))))
    return settings


def _manifest(value: Mapping[str, Any]) -> str:
    """Return what to do with the manifest of a ConfigMap that stands in the place of settings."""
    metadata, data = value.get("metadata"), value.get("data")
    keys = ", ".join(map(str, data)) if isinstance(data, dict) and data else "data"
    named = metadata if isinstance(metadata, dict) else {}
    namespace, name = named.get("namespace") or "NAMESPACE", named.get("name") or "NAME"
    return (
        f"this is the manifest of a ConfigMap, and the settings are the text in it ({keys}); write that text "
        f"into a file, or apply the manifest and name configmap/{namespace}/{name} instead of the file"
    )


def _order(found: tuple[Place, Mistake]) -> Place:
    return found[0]


def _line(name: str, place: Place, mistake: Mistake) -> str:
    key = spelt(mistake.path)
    return f"{name}:{place[0]}:{place[1]}: {f'{key}: ' if key else ''}{mistake.message}"


def _out_of_order(sections: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield windows and freezes that end before they start, whatever is wrong in other sections."""
    times = {key: sections[key] for key in ("timeZone", "windows", "notAllowed") if key in sections}
    try:
        Settings.model_validate(times, by_alias=True, by_name=False)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            yield from mistakes_of(details, lambda path: keys_at(whole_settings(), path))


def _named_twice(value: dict[str, object]) -> Iterator[Mistake]:
    """Yield entries of one list with the same name, even if other mistakes make the list invalid."""
    drain = value.get("drain")
    lists: list[tuple[Path, object]] = [((key,), entries) for key, entries in value.items()]
    lists.append((("drain", "rules"), drain.get("rules") if isinstance(drain, dict) else None))
    for path, entries in lists:
        seen: dict[str, int] = {}
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            name = entry.get("name") if isinstance(entry, dict) else None
            if not isinstance(name, str):
                continue
            if name in seen:
                first = spelt((*path, seen[name]))
                message = f"{literal(name)} is also the name of {first}; names are unique"
                yield Mistake((*path, index, "name"), message)
            seen.setdefault(name, index)


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
