"""The report for people and machines; the diff of a golden file is the review.

`python -m tests.report.test_golden` writes the files again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler import __version__
from reconciler.report.document import as_json
from reconciler.report.markdown import as_markdown
from reconciler.report.text import as_text
from tests.report.scene import document

GOLDEN = Path(__file__).parent / "golden"
FILES: dict[str, Callable[[], str]] = {
    "pass.txt": lambda: as_text(document()),
    "rehearsal.txt": lambda: as_text(document(rehearsed=True)),
    "pass.json": lambda: as_json({**document(), "program": "VERSION"}),
    "rehearsal.md": lambda: as_markdown(document(rehearsed=True)),
}


@pytest.mark.parametrize("name", FILES)
def test_the_report_is_as_in_the_golden_file(name: str) -> None:
    assert FILES[name]() == (GOLDEN / name).read_text("utf-8")


def test_the_document_names_the_program() -> None:
    assert document()["program"] == __version__


if __name__ == "__main__":
    for name, make in FILES.items():
        (GOLDEN / name).write_text(make(), encoding="utf-8")
