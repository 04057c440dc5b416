"""Tests know what the program offers, not how: a private name may be joined, moved or dropped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ("reconciler", "jobs")
PRIVATE = re.compile(r"\b_[A-Za-z]")
OF_OTHERS = re.compile(r"""[.'"]_[A-Za-z]|import [^\n]*\b_[A-Za-z]|^ {4}_[A-Za-z]\w*,$""", re.MULTILINE)
"""What is not only a name of the file itself."""

WHAT_TO_DO = """
A test names a private name of the program, which may change with every commit. Break what comes in instead: a
node, a pod, an answer, an annotation, a setting, a port, a function of a plugin. Or read what comes out. If
nothing public shows it, ask whether anybody can notice it."""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def _is_of_program(module: str | None) -> bool:
    return (module or "").partition(".")[0] in PROGRAM


def _trees(*folders: str, naming: re.Pattern[str] = PRIVATE) -> Iterator[tuple[Path, list[ast.AST]]]:
    """Yield the files of these folders that name something like this, with all nodes of their trees."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if naming.search(text):
                yield path, list(ast.walk(ast.parse(text)))


def _made(nodes: list[ast.AST]) -> set[str]:
    """Return the private names of functions, classes, constants and attributes that a file makes."""
    names: set[str] = set()
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                names.add(name)
    return set(filter(_is_private, names))


class _Names:
    """What the names of a file of tests stand for; `private` are the private names of the program."""

    def __init__(self, nodes: list[ast.AST], private: set[str]) -> None:
        self._made, self._private = _made(nodes), private
        self._program, self._others = set[str](), set[str]()
        for node in nodes:
            if isinstance(node, ast.ImportFrom | ast.Import):
                of_program = isinstance(node, ast.ImportFrom) and _is_of_program(node.module)
                names = {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
                (self._program if of_program else self._others).update(names)
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        names = {getattr(each, "attr", "") or getattr(each, "id", "") for each in called}
        self._sets = not names.isdisjoint({"setattr", "getattr"})
        self._parts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        # A class of the tests may use its own private names, and not those of a class of the program.
        self._inside: set[ast.AST] = set()
        for node in nodes:
            if isinstance(node, ast.ClassDef) and not self._is_of_program(node):
                self._inside.update(ast.walk(node))

    def _is_of_program(self, node: ast.ClassDef) -> bool:
        return any(isinstance(base, ast.Name) and base.id in self._program for base in node.bases)

    def named(self, node: ast.AST) -> str:
        """Return the private name of the program that an expression or import names, empty without one."""
        known = self._private - self._made
        match node:
            case ast.ImportFrom(module=module) if _is_of_program(module):
                return next((alias.name for alias in node.names if _is_private(alias.name)), "")
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if _is_private(attribute):
                if name in self._program:
                    return ast.unparse(node)
                if name in self._others or (name in ("self", "cls") and node in self._inside):
                    return ""
                return ast.unparse(node) if attribute in known else ""
            case ast.Attribute(attr=attribute) if attribute in known:
                return ast.unparse(node)
            case ast.Constant(value=str(text)) if node not in self._parts:
                path, _, last = text.rpartition(".")
                if last in self._private and _is_of_program(path):
                    return repr(text)
                return repr(text) if self._sets and text in known else ""
        return ""


def test_no_test_names_a_private_name_of_the_program() -> None:
    private = {name for _, nodes in _trees(*PROGRAM) for name in _made(nodes)}
    assert private

    named = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {name}"
        for path, nodes in _trees("tests", naming=OF_OTHERS)
        for names in (_Names(nodes, private),)
        for node in nodes
        if (name := names.named(node))
    ]
    assert not named, "\n".join([WHAT_TO_DO, *named])
