"""Follow one value through the program, from its syntax trees alone; nothing is run.

The walk begins at a parameter of a function, reads the function from the top, and follows each call that
hands the value on: the value itself, a field of it, an item of it, or a copy that `replace` makes. Each
function is entered once. What a call returns is not followed, and neither is a call whose function is chosen
as the program runs, such as that of a feature. A method is found by the annotations of parameters and fields.

A *stay* is a function that the walk enters. A *room* is a file. A *climb* is a step from one stay to the next
that leads into a room on a higher floor: a room stands above all rooms that it imports. A *carrier* is a
class that a function on the way takes as a parameter or makes, and that is no value of the model, no setting
and no window.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

_NO_CARRIERS = ("reconciler.model", "reconciler.settings", "reconciler.calendar")

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class _Place(NamedTuple):
    """A definition: its module, its class if it is a method, and its name."""

    module: str
    holder: str
    name: str


class Walk(NamedTuple):
    """The stays in their order, as `module:function`; the rooms, the climbs and the carriers."""

    stays: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()
    climbs: tuple[str, ...] = ()
    carriers: tuple[str, ...] = ()


class House:
    """The modules of a program, with what each defines and imports."""

    def __init__(self, modules: Mapping[str, ast.Module]) -> None:
        """`modules` are the syntax trees by the names of the modules."""
        self._functions: dict[_Place, _Function] = {}
        self._classes: dict[tuple[str, str], ast.ClassDef] = {}
        self._imported: dict[tuple[str, str], tuple[str, str]] = {}
        self._modules = modules
        for module, tree in modules.items():
            for node in tree.body:
                if isinstance(node, _Function):
                    self._functions[_Place(module, "", node.name)] = node
                elif isinstance(node, ast.ClassDef):
                    self._classes[module, node.name] = node
                    for inside in node.body:
                        if isinstance(inside, _Function):
                            self._functions[_Place(module, node.name, inside.name)] = inside
            for imports in ast.walk(tree):
                if isinstance(imports, ast.ImportFrom) and imports.module:
                    for alias in imports.names:
                        self._imported[module, alias.asname or alias.name] = (imports.module, alias.name)
        self._floors = cache(self._floor)

    def walk(self, name: str, parameter: str) -> Walk:
        """Follow the parameter of the function of this name; an empty walk if there is no such function."""
        start = next((place for place in self._functions if not place.holder and place.name == name), None)
        if start is None:
            return Walk()
        entered: dict[_Place, None] = {}
        carriers: set[str] = set()
        self._enter(start, {parameter}, entered, carriers)
        climbs = tuple(
            f"{below} -> {above}"
            for below, above in pairwise(place.module for place in entered)
            if self._floors(above) > self._floors(below)
        )
        return Walk(
            tuple(f"{place.module}:{place.holder}.{place.name}".replace(":.", ":") for place in entered),
            tuple(sorted({place.module for place in entered})),
            climbs,
            tuple(sorted(carriers)),
        )

    def _floor(self, module: str) -> int:
        """Return how many rooms stand below this one, on the longest way; modules import in no circle."""
        below = {
            inside if inside in self._modules else imported
            for (importer, _), (imported, name) in self._imported.items()
            if importer == module
            for inside in (f"{imported}.{name}",)
        }
        return 1 + max((self._floors(each) for each in below & self._modules.keys() - {module}), default=0)

    def _enter(
        self, place: _Place, handed: set[str], entered: dict[_Place, None], carriers: set[str]
    ) -> None:
        """Enter a function with the parameters in which the value is handed to it."""
        if place in entered:
            return
        entered[place] = None
        function = self._functions[place]
        types = {
            arg.arg: self._class_of(place.module, arg.annotation)
            for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        }
        if place.holder:
            types["self"] = (place.module, place.holder)
        carriers.update(_carrier(found) for name, found in types.items() if name != "self" and found)
        followed = set(handed)
        for node in _in_order(function):
            if isinstance(node, ast.Assign | ast.NamedExpr | ast.For | ast.comprehension):
                value = node.value if isinstance(node, ast.Assign | ast.NamedExpr) else node.iter
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found = self._type_of(value, place.module, types)
                for target in targets:
                    if isinstance(target, ast.Name):
                        types.setdefault(target.id, found)
                        if _is_handed(value, followed):
                            followed.add(target.id)
            elif isinstance(node, ast.Call):
                called, arguments = node.func, node.args
                if isinstance(called, ast.Name) and called.id == "partial" and arguments:
                    called, *arguments = arguments
                made = self._class_of(place.module, called)
                if made:
                    carriers.add(_carrier(made))
                entry = self._called(called, place.module, types)
                if entry is None:
                    continue
                names = {
                    *self._names(entry, called, arguments, followed),
                    *(word.arg for word in node.keywords if word.arg and _is_handed(word.value, followed)),
                }
                if names:
                    self._enter(entry, names, entered, carriers)
        carriers.discard("")

    def _names(
        self, entry: _Place, called: ast.expr, arguments: list[ast.expr], followed: set[str]
    ) -> Iterator[str]:
        """Yield the parameters of a function that a call hands the value to, by their places."""
        parameters = [arg.arg for arg in self._functions[entry].args.args]
        if entry.holder and parameters[:1] == ["self"]:
            if isinstance(called, ast.Attribute) and _is_handed(called.value, followed):
                yield "self"
            parameters = parameters[1:]
        for parameter, argument in zip(parameters, arguments, strict=False):
            if _is_handed(argument, followed):
                yield parameter

    def _called(
        self, called: ast.expr, module: str, types: Mapping[str, tuple[str, str] | None]
    ) -> _Place | None:
        """Return the function that is called, None if it is no function of the program, or not known."""
        if isinstance(called, ast.Name):
            place = _Place(*self._defined(module, called.id))
        elif isinstance(called, ast.Attribute):
            imported = isinstance(called.value, ast.Name) and self._imported.get((module, called.value.id))
            if imported and f"{imported[0]}.{imported[1]}" in self._modules:
                place = _Place(*self._defined(f"{imported[0]}.{imported[1]}", called.attr))
            else:
                holder = self._type_of(called.value, module, types)
                place = _Place(holder[0], holder[1], called.attr) if holder else _Place("", "", "")
        else:
            return None
        return place if place in self._functions else None

    def _defined(self, module: str, name: str) -> tuple[str, str, str]:
        """Return where a name of a module is defined, as module, no class, and name."""
        while (module, name) in self._imported:
            module, name = self._imported[module, name]
        return module, "", name

    def _class_of(self, module: str, annotation: ast.expr | None) -> tuple[str, str] | None:
        """Return the first class of the program in an annotation, or that of a call of it."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        for node in ast.walk(annotation) if annotation is not None else ():
            if isinstance(node, ast.Name):
                where, _, name = self._defined(module, node.id)
                if (where, name) in self._classes:
                    return where, name
        return None

    def _type_of(
        self, value: ast.expr, module: str, types: Mapping[str, tuple[str, str] | None]
    ) -> tuple[str, str] | None:
        """Return the class of a value by annotations, None if it is not known."""
        if isinstance(value, ast.Name):
            return types.get(value.id)
        if isinstance(value, ast.Call) and value.args and ast.unparse(value.func) == "replace":
            return self._type_of(value.args[0], module, types)
        if isinstance(value, ast.Call):
            target = self._called(value.func, module, types)
            if target is not None:
                return self._class_of(target.module, self._functions[target].returns)
            return self._class_of(module, value.func) if isinstance(value.func, ast.Name) else None
        if not isinstance(value, ast.Attribute):
            return None
        holder = self._type_of(value.value, module, types)
        if holder is None:
            return None
        for node in self._classes[holder].body:
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == value.attr:
                return self._class_of(holder[0], node.annotation)
            if isinstance(node, _Function) and node.name == value.attr:
                return self._class_of(holder[0], node.returns)
        return None


def _in_order(function: _Function) -> list[ast.AST]:
    """Return the nodes of a function in the order of its text, what is assigned after its value."""

    def start(node: ast.AST) -> tuple[int, int]:
        if isinstance(node, ast.comprehension):
            # What it names stands before it in the text.
            return node.iter.lineno, -1
        return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)

    return sorted(ast.walk(function), key=start)


def _is_handed(value: ast.expr, followed: set[str]) -> bool:
    """Whether an expression is the value that is followed, a field or an item of it, or a copy of it."""
    while isinstance(value, ast.Attribute | ast.Subscript | ast.Starred):
        value = value.value
    if isinstance(value, ast.Call) and value.args and ast.unparse(value.func) == "replace":
        return _is_handed(value.args[0], followed)
    return isinstance(value, ast.Name) and value.id in followed


def _carrier(found: tuple[str, str]) -> str:
    module, name = found
    return "" if module.startswith(_NO_CARRIERS) else f"{module}:{name}"
