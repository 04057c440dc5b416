"""How a mutant finds its code: by place and syntax tree, wherever the file is and however it is formatted."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.laws.mutant import Edit, Mutant, read
from tests.laws.operations import mutated
from tests.laws.places import DoesNotFit, Index

PROGRAM = '''
LIMIT = min(4, 5)

class Lock:
    """Held by one."""

    patience: int = 3

    def take(self, names, now):
        if not names: return None
        try:
            free = [name for name in names if name.free]
            free.sort()
        except (KeyError,
                ValueError): free = ()
        until = 3
        while until:
            until -= 1
        match now:
            case 1 | 2: free = names
        return self.give(free, now=now) if (free and self.patience
            and now > LIMIT) else "none"
'''


@pytest.mark.parametrize(
    ("place", "operation", "before", "after"),
    [
        pytest.param("Lock.take", "drop self.patience", "free and self.patience", "free", id="operand"),
        pytest.param("Lock.take", "drop now=now", "give(free, now=now)", "give(free)", id="argument"),
        pytest.param("Lock.take", "drop name.free", " if name.free", "", id="condition of a loop"),
        pytest.param("Lock.take", "drop ValueError", "ValueError", "", id="item"),
        pytest.param("Lock.take", "drop free.sort( )", "free.sort()", "pass", id="statement"),
        pytest.param("Lock.take", "drop if not names:", "if not names: return None", "pass", id="block"),
        pytest.param("Lock.take", "swap (now>LIMIT) => False", "now > LIMIT", "False", id="expression"),
        pytest.param("Lock.take", "swap 'none' => ''", '"none"', '""', id="quotes"),
        pytest.param("Lock.take", "swap if not names: => while not names:", "if not", "while not", id="head"),
        pytest.param("Lock.take", "swap case 1 | 2: => case 1:", "case 1 | 2:", "case 1:", id="case"),
        pytest.param(
            "Lock.take",
            "swap except (KeyError, ValueError): => except OSError: raise",
            "except (KeyError,\n                ValueError): free = ()",
            "except OSError: raise",
            id="handler",
        ),
        pytest.param("Lock.take", "swap now=now => now=0", "now=now", "now=0", id="keyword argument"),
        pytest.param("Lock.patience", "swap 3 => 0", "int = 3", "int = 0", id="field"),
        pytest.param("LIMIT", "drop 5", "(4, 5)", "(4)", id="constant"),
        pytest.param("", "drop LIMIT = min(4, 5)", "LIMIT = min(4, 5)", "pass", id="in the file"),
        pytest.param(
            "",
            "swap free = [name for name in names if name.free]; free.sort() => free.sort()",
            "free = [name for name in names if name.free]",
            "",
            id="statements that follow each other",
        ),
        pytest.param(
            "Lock.take",
            "swap until = 3; while until: => while until:",
            "until = 3",
            "",
            id="a block after a statement",
        ),
        pytest.param(
            "Lock.take",
            "swap if not names: return None => if not names: return names",
            "return None",
            "return names",
            id="block with what stands in it",
        ),
    ],
)
def test_an_operation_changes_its_code_and_nothing_else(
    place: str, operation: str, before: str, after: str
) -> None:
    assert PROGRAM.count(before) == 1
    expected = ast.parse(PROGRAM.replace(before, after))

    assert ast.dump(ast.parse(mutated(PROGRAM, place, operation))) == ast.dump(expected)


@pytest.mark.parametrize(
    ("place", "operation", "reason"),
    [
        pytest.param("Lock.give", "drop now", "Lock.give is there 0 times", id="no such place"),
        pytest.param("Lock.take", "drop names == 3", "names == 3 is there 0 times", id="no such code"),
        pytest.param("Lock.take", "drop names", "names is there 3 times", id="code that is there again"),
        pytest.param(
            "Lock.take",
            "drop if not names: return",
            "if not names: return is there 0 times",
            id="other block",
        ),
        pytest.param("Lock.take", "drop LIMIT", "drop LIMIT is not possible", id="half of a comparison"),
        pytest.param(
            "Lock.take", "swap free.sort()", "swap free.sort() is not possible", id="swap for nothing"
        ),
        pytest.param("Lock.take", "swap now=now => 3 +", "3 + can't stand there", id="no code"),
    ],
)
def test_what_does_not_fit_is_named(place: str, operation: str, reason: str) -> None:
    with pytest.raises(DoesNotFit, match=f"^{re.escape(reason)}$"):
        mutated(PROGRAM, place, operation)


def test_a_place_is_found_in_whichever_file_it_is(tmp_path: Path) -> None:
    for file in ("jobs/lease.py", "reconciler/lease/__init__.py", "reconciler/clients/lock.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("def take():\n    until = 3\n", encoding="utf-8")
    (tmp_path / "reconciler/clients/slot.py").write_text("def give(): pass", encoding="utf-8")
    index = Index(tmp_path)

    assert index.file_of("give") == "reconciler/clients/slot.py"
    assert index.file_of("lock:take") == "reconciler/clients/lock.py"
    assert index.file_of("reconciler.lease:take") == "reconciler/lease/__init__.py"
    with pytest.raises(
        DoesNotFit, match=r"^lease:take is in 2 files: jobs/lease.py, reconciler/lease/__init"
    ):
        index.file_of("lease:take")
    with pytest.raises(DoesNotFit, match=r"^take.until is in 0 files: $"):
        index.file_of("take.until")


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """A room with a lock and its slots, and a room beside it."""
    texts = {
        "clients/lock.py": "class Lock:\n    def take(self): return held and free\n    def give(self): end()",
        "clients/slots/slot.py": "def keep(slots): return free and slots",
        "clients/slots/first.py": "def first(slots): return late and slots",
        "beside.py": "def beside(): return over and free",
    }
    for file, text in texts.items():
        (tmp_path / "reconciler" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "reconciler" / file).write_text(text, encoding="utf-8")
    return Index(tmp_path)


@pytest.mark.parametrize(
    ("place", "code", "file", "name"),
    [
        pytest.param("Lock.take", "free", "lock.py", "Lock.take", id="in its place, and elsewhere too"),
        pytest.param("Lock.take", "end()", "lock.py", "", id="in another function"),
        pytest.param("Lock.take", "late", "slots/first.py", "", id="in a folder below"),
        pytest.param("reconciler/clients/gone.py", "late", "slots/first.py", "", id="of a file that is gone"),
    ],
)
def test_code_is_found_in_its_place_or_where_it_moved_to_within_the_room(
    index: Index, place: str, code: str, file: str, name: str
) -> None:
    assert Edit(place, f"swap {code} => now").found(index) == (f"reconciler/clients/{file}", name)


@pytest.mark.parametrize(
    ("place", "code", "reason"),
    [
        pytest.param(
            "Lock.take",
            "slots",
            "slots is there 2 times: reconciler/clients/slots/first.py, reconciler/clients/slots/slot.py",
            id="twice in the room",
        ),
        pytest.param(
            "reconciler/clients/slots/slot.py", "held", "held is there 0 times", id="above the room"
        ),
        pytest.param("Lock.take", "over", "over is there 0 times", id="in the room beside"),
        pytest.param("Lock.keep", "free", "Lock.keep is in 0 files: ", id="a place that is gone"),
        *(
            pytest.param(
                place,
                "end()",
                f"{place} is private: name the file or the public function around it",
                id=place,
            )
            for place in ("_Lock.take", "Lock._take", "Lock.__init__", "_lock:take")
        ),
    ],
)
def test_code_that_is_not_in_its_room_once_or_in_a_private_place_is_refused(
    index: Index, place: str, code: str, reason: str
) -> None:
    with pytest.raises(DoesNotFit, match=f"^{re.escape(reason)}$"):
        Edit(place, f"swap {code} => now").found(index)


def test_a_list_names_a_test_and_below_it_its_rules_with_their_edits() -> None:
    lines = ["tests/a.py::test_b", "4 an end is kept", "  take: swap a =>", "      b", "  k8s/a.yaml: drop x"]

    assert list(read(lines)) == [
        Mutant(
            4,
            "an end is kept",
            "tests/a.py::test_b",
            (Edit("take", "swap a => b"), Edit("k8s/a.yaml", "drop x")),
        )
    ]
