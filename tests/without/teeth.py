"""What is left of a plugin that was deleted from a copy of the project: its four teeth.

A *tooth* looks for one kind of what may be left:

- `settings`: a key of the settings that is nothing without the plugin, and still valid
- `words`: a file of the core with a word of the plugin
- `tests`: a module of the tests of others that imports what is gone
- `pointers`: a word of it in an alert or a value of the chart, or a link to its page that is left in the docs

`KNOWN` has how many of each are left today. A number may only shrink, and the aim is a table without lines.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.without.words import WORDS, Words, in_core

_PAGES = ("*.md", "docs/**/*.md")
_RULES = ("k8s/monitoring/rules.yaml", "charts/node-maintenance-reconciler/values.yaml")
_LINK = re.compile(r"\]\(([\w./-]+\.md)\b")
_DEEPEST = 4
_PYTHON = ("reconciler", "jobs", "tests")


class Left(NamedTuple):
    """How many places of each kind may be left."""

    settings: int = 0
    words: int = 0
    tests: int = 0
    pointers: int = 0


ALL = "all"
"""The name under which `KNOWN` has what is left with all plugins deleted at once."""

KNOWN: Mapping[str, Left] = {
    "features/workflows": Left(tests=3, pointers=3),
    "features/publishing": Left(pointers=2),
    "features/hooks": Left(pointers=4),
    "features/metrics": Left(pointers=9),
    "features/notices": Left(words=1),
    "sources/condition": Left(tests=1),
    "sources/imds": Left(pointers=2),
    "sources/named_condition": Left(settings=2),
    "sources/arm": Left(tests=2),
    "sources/aws": Left(tests=2),
    ALL: Left(settings=2, words=1, tests=5, pointers=20),
}


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


def bites(name: str, left: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a sentence for each tooth of a plugin with more places than `KNOWN` has."""
    known = KNOWN.get(name, Left())._asdict()
    for tooth, places in left.items():
        if len(places) > known[tooth]:
            yield f"{tooth}: {len(places)} places are left, {known[tooth]} are known; --left lists them"


def lowered(name: str, left: Mapping[str, Sequence[str]]) -> Left | None:
    """Return the numbers for `KNOWN` if fewer places are left than it says, else None."""
    known = KNOWN.get(name, Left())
    least = Left(**{tooth: min(len(left[tooth]), number) for tooth, number in known._asdict().items()})
    return None if least == known else least


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
    for name in _RULES:
        lines = (copy / name).read_text(encoding="utf-8").splitlines() if (copy / name).is_file() else []
        yield from (f"{name}:{number}" for number, line in enumerate(lines, 1) if words.are_in(line))
