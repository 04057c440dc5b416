"""One rule of the program, and how to remove it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.laws.operations import code_of, instead, mutated, spots_of
from tests.laws.places import DoesNotFit, Index


@dataclass(frozen=True, slots=True)
class Edit:
    """An operation in a place of the program: a file, or a public function, class, method or constant."""

    place: str
    operation: str

    def found(self, index: Index) -> tuple[str, str]:
        """Return the file of the code, and the name of its place there, "" for all of the file.

        Code of Python that is not in its place is found where it moved to within the room: the folder of the
        place and those below it. Raise DoesNotFit if it is not there once, or if the place is private.
        """
        code = code_of(self.operation)
        if "/" in self.place:
            file, name = self.place, ""
        else:
            if any(part.startswith("_") for part in self.place.replace(":", ".").split(".")):
                raise DoesNotFit(f"{self.place} is private: name the file or the public function around it")
            file, name = index.file_of(self.place), self.place.rpartition(":")[2]
        if not file.endswith(".py"):
            count = index.text(file).count(code)
            if count != 1:
                raise DoesNotFit(f"{code} is there {count} times")
            return file, ""
        there = [(file, name, spot) for spot in spots_of(index.text(file, gone=""), name, code)] or [
            (other, "", spot)
            for other, text in index.room_of(file).items()
            for spot in spots_of(text, "", code)
        ]
        if len(there) != 1:
            files = ", ".join(dict.fromkeys(other for other, _, _ in there))
            raise DoesNotFit(f"{code} is there {len(there)} times{files and f': {files}'}")
        ((file, name, spot),) = there
        instead(spot, self.operation)
        return file, name

    def apply(self, file: str, name: str, text: str) -> str:
        """Return the text of the file after the edit in the place of this name. Raise DoesNotFit."""
        if file.endswith(".py"):
            return mutated(text, name, self.operation)
        old, _, new = self.operation.partition(" ")[2].partition(" => ")
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

    def files(self, index: Index) -> dict[str, str]:
        """Return the texts without the rule, by file. Raise DoesNotFit if an edit does not fit."""
        texts: dict[str, str] = {}
        for edit in self.edits:
            file, name = edit.found(index)
            texts[file] = edit.apply(file, name, texts.get(file) or index.text(file))
        return texts


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
