"""What `nox -s size` counts, on a project of a few files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.size.__main__ import CIRCLES, measure
from tests.without.__main__ import plugins
from tests.without.words import WORDS


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


def test_a_node_is_followed_into_what_it_is_handed_to(tmp_path: Path) -> None:
    put(
        tmp_path,
        "reconciler/passes/decide.py",
        """
from reconciler.model import node as nodes
from reconciler.model.node import Facts
from reconciler.passes.marks import Mark, marked

def decide_node(node: Facts, all_of: list[Facts]) -> Mark:
    name = node.name
    _seen(all_of)
    copied = replace(node, name="b")
    node.settle()
    nodes.shown(text=name)
    return marked(Mark(), copied)

def _seen(all_of: list[Facts]) -> None: ...
""",
    )
    put(
        tmp_path,
        "reconciler/passes/marks.py",
        """
from reconciler.model.node import Facts

class Mark: ...

def marked(mark: Mark, facts: Facts) -> Mark:
    return [_one(each) for each in facts.parts][0]

def _one(part: object) -> Mark: ...
""",
    )
    put(
        tmp_path,
        "reconciler/model/node.py",
        """
class Facts:
    def settle(self) -> None: ...

def shown(text: str) -> None: ...
""",
    )
    figures = measure(tmp_path)

    assert figures["stays of a node on its way through decide_node"].places == (
        "reconciler.passes.decide:decide_node",
        "reconciler.model.node:Facts.settle",
        "reconciler.model.node:shown",
        "reconciler.passes.marks:marked",
        "reconciler.passes.marks:_one",
    )
    assert figures["rooms on that way"].value == 3
    assert figures["climbs on that way"].places == ("reconciler.model.node -> reconciler.passes.marks",)
    assert figures["carriers on that way"].places == ("reconciler.passes.marks:Mark",)


def test_a_word_of_a_plugin_counts_in_the_core_alone(tmp_path: Path) -> None:
    put(tmp_path, "reconciler/model/a.py", "# what Karpenter says to a webhook\n")
    put(tmp_path, "reconciler/model/b.py", "HOOKS = ()\n")
    put(tmp_path, "jobs/c.py", "# slack\n")
    put(tmp_path, "reconciler/features/hooks/feature.py", "# hooks\n")
    words = measure(tmp_path)["files of the core with words of plugins"]
    assert words.places == ["jobs/c.py", "reconciler/model/b.py"]


def test_each_plugin_has_its_words() -> None:
    assert set(WORDS) == {str(plugin) for plugin in plugins()}
