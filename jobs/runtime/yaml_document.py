"""A JSON document as YAML. Its texts come from outside, so none of them controls the terminal."""

from __future__ import annotations

import json
from typing import Any

import yaml

_NO_FOLDING = 2**30
"""Columns. A text stays on one line, so that `grep` finds it."""

_NUMERIC = tuple("+-.0123456789")
_TRUTHS = ("y", "Y", "n", "N")


class _Plain(yaml.SafeDumper):
    """A writer of our own, because what is set on PyYAML's counts for every user of it."""


class _Fast(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """The same in C, if PyYAML has it."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Only between double quotes can a character be an escape. Without quotes, some readers take `1e3` for a
    # number and `y` for true.
    numeric = text[:1] in _NUMERIC or text in _TRUTHS
    style = ("'" if numeric else None) if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


for _dumper in (_Plain, _Fast):
    _dumper.add_representer(str, _text)


def as_yaml(json_text: str) -> str:
    """Return the document of a JSON text as YAML, with its keys in order and one line's end."""
    document = json.loads(json_text)
    try:
        written = _dumped(document, _Fast)
    except UnicodeEncodeError:
        # Half of a surrogate pair: the library in C takes UTF-8 only.
        written = _dumped(document, _Plain)
    return "\n".join(map(_escaped, written.split("\n")))


def _dumped(document: Any, dumper: Any) -> str:
    return str(yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True, width=_NO_FOLDING))


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in line)
