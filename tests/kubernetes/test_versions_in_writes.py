"""No write depends on the version of a whole object: others change any object at any time."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]

ALLOWED = {
    # Who has changed a Lease in any way may have taken it.
    "reconciler/kubernetes/turns.py": 1,
    # From where a watch goes on.
    "reconciler/kubernetes/watching.py": 1,
    # Lines are added to those that were read, and one process at a time writes them.
    "reconciler/kubernetes/kept_lines.py": 1,
    # In place of all that is expected, for a server that compares in another way.
    "reconciler/kubernetes/json_patch.py": 1,
}


def test_only_these_are_written_as_the_version_that_was_read() -> None:
    named: dict[str, int] = {}
    for folder in ("reconciler", "jobs"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "resourceVersion" not in text:
                continue
            texts = [
                one
                for one in ast.walk(ast.parse(text))
                if isinstance(one, ast.Constant) and one.value == "resourceVersion"
            ]
            if texts:
                named[path.relative_to(ROOT).as_posix()] = len(texts)

    assert named == ALLOWED
