"""What is left of a plugin that was deleted from a copy of the project: its four teeth.

A *tooth* looks for one kind of what may be left:

- `settings`: a key of the settings that is nothing without the plugin, and still valid
- `words`: a file of the core with a word of the plugin
- `tests`: a module of the tests of others that imports what is gone
- `pointers`: a word of it in an alert or a value of the chart, or a link to its page that is left in the docs
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.without.words import WORDS, Words, in_core

_PAGES = ("*.md", "docs/**/*.md")
_RULES = ("k8s/monitoring/*rules.yaml", "charts/*/values.yaml")
_LINK = re.compile(r"\]\(([\w./-]+\.md)\b")
_DEEPEST = 4
_PYTHON = ("reconciler", "jobs", "tests")


def left_of(names: Collection[str], whole: Path, copy: Path) -> dict[str, Sequence[str]]:
    """Return the places of each tooth after these plugins were deleted from the copy of the whole project."""
    owned = [WORDS[name] for name in names]
    return {
        "settings": sorted(key for words in owned for key in _valid(words, copy)),
        "words": sorted({place for words in owned for place in in_core(copy, words)}),
        "tests": sorted(_lost_imports(whole, copy)),
        "pointers": sorted(
            {*_lost_links(copy), *(place for words in owned for place in _rules(words, copy))}
        ),
    }


def _valid(words: Words, copy: Path) -> Iterator[str]:
    """Yield the keys of a plugin that the settings of the copy still have."""
    printed = subprocess.run(
        (sys.executable, "-m", "jobs", "schema"), cwd=copy, capture_output=True, text=True, check=False
    ).stdout
    # Without a schema the other checks say what is broken.
    schema = json.loads(printed) if printed.startswith("{") else {}
    return (key for key in words.keys if key in settings_keys(schema))


def settings_keys(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys of a JSON schema with those below them, with dots."""
    found: set[str] = set()

    def read(part: Any, above: tuple[str, ...]) -> None:
        if not isinstance(part, dict) or len(above) > _DEEPEST:
            return
        if "$ref" in part:
            read(schema["$defs"][part["$ref"].rpartition("/")[2]], above)
        for choice in (*part.get("anyOf", ()), part.get("items")):
            read(choice, above)
        for name, inside in part.get("properties", {}).items():
            found.add(".".join((*above, name)))
            read(inside, (*above, name))

    read(schema, ())
    return frozenset(found)


def _lost_imports(whole: Path, copy: Path) -> Iterator[str]:
    """Yield the modules of the copy's tests that import, when they are loaded, a module that is gone."""
    gone = _modules(whole) - _modules(copy)
    for path in sorted((copy / "tests").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names: set[str] = set()
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            if names & gone:
                yield str(path.relative_to(copy))
                break


def _modules(root: Path) -> set[str]:
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for folder in _PYTHON
        for path in (root / folder).rglob("*.py")
    }


def _lost_links(copy: Path) -> Iterator[str]:
    """Yield the links of the pages to pages that are gone."""
    for page in (page for pattern in _PAGES for page in copy.glob(pattern)):
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            if not (page.parent / link).is_file():
                yield f"{page.relative_to(copy)} -> {link}"


def _rules(words: Words, copy: Path) -> Iterator[str]:
    """Yield the lines of alerts and of the chart's values with a word of the plugin."""
    for file in (file for pattern in _RULES for file in copy.glob(pattern)):
        lines = file.read_text(encoding="utf-8").splitlines()
        yield from (
            f"{file.relative_to(copy)}:{number}" for number, line in enumerate(lines, 1) if words.are_in(line)
        )
