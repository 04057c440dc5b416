"""One rule of the program, and how to remove it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.laws.operations import changed, mutated
from tests.laws.places import DoesNotFit, Index


@dataclass(frozen=True, slots=True)
class Edit:
    """An operation in a place: a function, class or constant of the program, or a file that is not Python."""

    place: str
    operation: str

    @property
    def name(self) -> str:
        """The qualified name of the place, without its module."""
        return self.place.rpartition(":")[2]

    def file(self, index: Index) -> str:
        """Return the file of the place. Raise DoesNotFit if it is missing, or stands in more than one."""
        return self.place if "/" in self.place else index.file_of(self.place)

    def apply(self, text: str) -> str:
        """Return the text of the file after the edit. Raise DoesNotFit."""
        if "/" not in self.place:
            return mutated(text, self.name, self.operation)
        old, _, new = self.operation.partition(" ")[2].partition(" => ")
        if text.count(old) != 1:
            raise DoesNotFit(f"{old} is there {text.count(old)} times")
        return text.replace(old, new)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One rule removed. `law` is the number of its law, or 0.

    `test` is the file that has to fail, or one of its tests as `file::test`, `tests/laws` all of the law's.
    """

    law: int
    rule: str
    test: str
    edits: tuple[Edit, ...]

    def files(self, index: Index, root: Path) -> dict[str, str]:
        """Return the texts without the rule, by file. Raise DoesNotFit if an edit does not fit."""
        texts: dict[str, str] = {}
        for edit in self.edits:
            file = edit.file(index)
            texts[file] = edit.apply(texts.get(file) or (root / file).read_text(encoding="utf-8"))
        return texts

    def check(self, index: Index, root: Path) -> None:
        """Raise DoesNotFit if an edit does not fit. This takes half of the time of `files`."""
        match self.edits:
            case (edit,) if "/" not in edit.place:
                changed((root / edit.file(index)).read_text(encoding="utf-8"), edit.name, edit.operation)
            case _:
                self.files(index, root)


def read(lines: Iterable[str]) -> Iterator[Mutant]:
    """Read a list of mutants.

    Below the test that has to fail stand its rules, each after the number of its law. Below a rule stand its
    edits, indented by two, and further in what does not fit on their lines.
    """
    test, rules = "", list[tuple[str, str, list[str]]]()
    for line in lines:
        if line.startswith("    "):
            rules[-1][2][-1] += f" {line.strip()}"
        elif line.startswith("  "):
            rules[-1][2].append(line.strip())
        elif line[:1].isdigit():
            rules.append((test, line.strip(), []))
        elif line.strip():
            test = line.strip()
    for test, rule, edits in rules:
        law, _, name = rule.partition(" ")
        pairs = (edit.partition(": ") for edit in edits)
        yield Mutant(int(law), name, test, tuple(Edit(place, operation) for place, _, operation in pairs))
