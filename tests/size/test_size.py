"""What `nox -s size` counts, on a project of a few files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.size.__main__ import CIRCLES, measure


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
            {"lines of source": 40, "files of source": 1, "lines of source without plugins": 40},
        ),
        ("reconciler/sources/a.py", "\n" * 40, {"lines of source": 40, "files of source": 1}),
        (
            "reconciler/features/__init__.py",
            "\n" * 40,
            {"lines of source": 40, "files of source": 1, "lines of source without plugins": 40},
        ),
        ("tests/a.py", "\n" * 40, {"lines of tests": 40}),
        ("release/a.py", "\n" * 40, {"lines of tools": 40}),
        ("docs/runbooks/a.md", "two words", {"words of docs": 2}),
    ],
)
def test_what_is_counted_where(tmp_path: Path, place: str, text: str, counted: dict[str, int]) -> None:
    put(tmp_path, place, text)
    assert {name: figure.value for name, figure in measure(tmp_path).items() if figure.value} == counted


def test_private_functions_that_are_called_once(tmp_path: Path) -> None:
    once, twice = "def _once() -> None: ...\n", "def _twice() -> None: ...\n"
    put(tmp_path, "jobs/a.py", f"{once}{twice}_once()\n_twice()\n_twice()\n")
    assert measure(tmp_path)["private functions called once"].places == ["jobs/a.py:1 _once"]


def test_guards(tmp_path: Path) -> None:
    caught = "try:\n    pass\nexcept Exception:\n    pass\nexcept ValueError:\n    pass\n"
    put(tmp_path, "jobs/a.py", f"{caught}guarded('a', b, None)\ncontext.faults.of('a', 'b', c, None)\n")
    guards = measure(tmp_path)["guards against any error"]
    assert guards.places == ["jobs/a.py:3", "jobs/a.py:7", "jobs/a.py:8"]


def test_a_circle_of_rooms_is_named_and_one_inside_a_room_too(tmp_path: Path) -> None:
    put(tmp_path, "reconciler/model/__init__.py", "")
    put(tmp_path, "reconciler/model/a.py", "from reconciler.model import b\n")
    put(tmp_path, "reconciler/model/b.py", "")
    put(tmp_path, "reconciler/drain/c.py", "import reconciler.model.a\n")
    assert not measure(tmp_path)[CIRCLES].value
    put(tmp_path, "reconciler/model/b.py", "from reconciler.model.a import x\n")
    assert measure(tmp_path)[CIRCLES].value == 1
    # No module imports itself by this, but the rooms import each other.
    put(tmp_path, "reconciler/model/b.py", "from reconciler.drain.d import x\n")
    put(tmp_path, "reconciler/drain/d.py", "")
    (circle,) = measure(tmp_path)[CIRCLES].places
    assert set(circle.split(" <- ")) == {"reconciler.model", "reconciler.drain"}
