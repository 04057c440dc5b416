"""How the text of a manifest becomes a template: each edit replaces text that must be there, and once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml


class NoSuchText(Exception):
    """A manifest has changed, so that an edit of the chart no longer fits; the message names both."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the text `old` by `new`, where it is there once, or `everywhere`."""

    old: str
    new: str
    everywhere: bool = False

    def on(self, text: str, name: str) -> str:
        """Return the text of the manifest `name` with this edit; NoSuchText if `old` is not there so."""
        count = text.count(self.old)
        if count == 0 or (count > 1 and not self.everywhere):
            raise NoSuchText(
                f"k8s/{name} has {count} times what an edit in charts/generator replaces:\n{self.old}"
            )
        return text.replace(self.old, self.new)


def after(old: str, new: str) -> Edit:
    """Return the edit that adds whole lines behind the text `old`, which ends with a line."""
    return Edit(old, old + new)


def extended(old: str, path: str, indent: int, key: str = "") -> Edit:
    """Return the edit that adds the value at `path`, unless it is empty, behind `old`, and below `key`."""
    space = " " * indent
    inner = indent + 2 if key else indent
    lines = [f"{{{{- with {path} }}}}"]
    lines += [f"{key}:"] if key else []
    lines += [f"{{{{- toYaml . | nindent {inner} }}}}", "{{- end }}"]
    return after(old, "".join(f"{space}{line}\n" for line in lines))


def replaced(key: str, default: dict[str, Any], path: str, indent: int) -> Edit:
    """Return the edit that puts the value at `path` in the place of its default below `key`."""
    space = " " * indent
    written = yaml.safe_dump(default, sort_keys=False).splitlines()
    old = "".join(f"{line}\n" for line in (f"{space}{key}:", *(f"{space}  {line}" for line in written)))
    return Edit(old, f"{space}{key}: {{{{- toYaml {path} | nindent {indent + 2} }}}}\n")


def labelled(text: str, labels: str) -> str:
    """Return the text with the line `labels` among the labels of each object."""
    return "---\n".join("".join(_labelled(one, labels)) for one in text.split("---\n"))


def _labelled(text: str, labels: str) -> Iterator[str]:
    inside = done = False
    for line in text.splitlines(keepends=True):
        if inside and not line.startswith("  "):
            inside = False
            if not done:
                yield f"  labels:\n    {labels}\n"
                done = True
        inside = inside or line.startswith("metadata:")
        yield line
        if inside and line.startswith("  labels:"):
            yield f"    {labels}\n"
            done = True
    if inside and not done:
        yield f"  labels:\n    {labels}\n"
