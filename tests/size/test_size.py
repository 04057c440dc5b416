"""What `nox -s size` counts, on a project of a few files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.size.__main__ import Figure, above, measure

WIDE = "class Wide:\n" + "".join(f"    field_{number}: int\n" for number in range(15))
WIDE += "    def __init__(self) -> None:\n        self.another = 1\n"
LONG = "def long() -> None:\n" + "    pass\n" * 60


def put(root: Path, place: str, text: str) -> None:
    """Write a file of the project."""
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("place", "text", "counted"),
    [
        (
            "reconciler/run.py",
            "\n" * 40,
            {"lines of source": 40, "files of source": 1, "lines of the core": 40},
        ),
        ("reconciler/sources/a.py", "\n" * 40, {"lines of source": 40, "files of source": 1}),
        ("jobs/a.py", "\n" * 40, {"lines of source": 40, "files of source": 1}),
        ("tests/a.py", "\n" * 40, {"lines of tests": 40}),
        ("release/a.py", "\n" * 40, {"lines of tools": 40}),
        ("docs/runbooks/a.md", "two words", {"words of docs": 2}),
    ],
)
def test_what_is_counted_where(tmp_path: Path, place: str, text: str, counted: dict[str, int]) -> None:
    put(tmp_path, place, text)
    assert {name: figure.value for name, figure in measure(tmp_path).items() if figure.value} == counted


def test_long_functions_wide_classes_and_short_modules(tmp_path: Path) -> None:
    put(tmp_path, "jobs/a.py", WIDE + LONG)
    put(tmp_path, "jobs/short.py", "\n")
    for spared in ("jobs/__init__.py", "jobs/checks/a.py"):
        put(tmp_path, spared, "\n")
    put(tmp_path, "reconciler/settings/schema.py", WIDE + "\n" * 40)
    figures = measure(tmp_path)
    assert figures["lines of the longest function"].value == 61
    assert figures["fields of the largest class"].value == 16
    assert figures["functions over 60 lines"].parts == [(61, "jobs/a.py:19 long")]
    assert figures["classes over 15 fields"].parts == [(16, "jobs/a.py:1 Wide")]
    assert figures["modules under 40 lines"].parts == [(1, "jobs/short.py")]


def test_a_figure_above_its_ceiling_is_named() -> None:
    limits = {name: {"ceiling": 10, "target": 5} for name in ("lines", "words")}
    figures = {"lines": Figure(10), "words": Figure(1012)}
    assert above(figures, limits) == ["words: 1,012 is 1,002 above the ceiling of 10"]
