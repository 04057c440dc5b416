"""Threads that can't be started, as an interpreter says it at the limit of processes of a Pod or its node."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
_BELOW = "_start_joinable_thread" if hasattr(threading, "_start_joinable_thread") else "_start_new_thread"
"""What `threading` asks the interpreter with, by its version."""


@contextmanager
def refused(refuses: Callable[[str], bool]) -> Iterator[None]:
    """Inside, no thread starts whose name `refuses` is true for."""
    start = getattr(threading, _BELOW)

    def begin(bootstrap: Any, *arguments: Any, **named: Any) -> Any:
        if refuses(bootstrap.__self__.name):
            raise RuntimeError("can't start new thread")
        return start(bootstrap, *arguments, **named)

    setattr(threading, _BELOW, begin)
    try:
        yield
    finally:
        setattr(threading, _BELOW, start)


class Once:
    """Refuses the next start of a thread for each of these patterns of names."""

    def __init__(self, *patterns: str) -> None:
        self.left = list(patterns)

    def __call__(self, name: str) -> bool:
        pattern = next((each for each in self.left if fnmatchcase(name, each)), None)
        if pattern is not None:
            self.left.remove(pattern)
        return pattern is not None


class OnceByFile:
    """Does the same in another process: a file has the patterns, and loses each line that was used.

    With `*` alone no thread starts for as long as the file says so.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()

    def __call__(self, name: str) -> bool:
        with self._lock:
            text = self._file.read_text(encoding="utf-8")
            if text == "*":
                return True
            once = Once(*text.split("\n"))
            if refuses := once(name):
                self._file.write_text("\n".join(once.left), encoding="utf-8")
            return refuses


def kinds() -> frozenset[str]:
    """Return a pattern for the names of each kind of thread that the program starts."""
    found = {"APScheduler"}
    for path in (each for folder in ("reconciler", "jobs") for each in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(each in text for each in ("reconciler.threads", "begin_read", "Supervised")):
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(
                    func=ast.Name("start" | "begin_read" | "Pool" | "Supervised" as by), args=[name, _, *_]
                ):
                    pass
                case ast.Call(func=ast.Name("partial" as by), args=[ast.Name("start"), name]):
                    pass
                case _:
                    continue
            match name:
                case ast.Constant(str(text)):
                    found.add(f"{text}_*" if by == "Pool" else text)
                case ast.JoinedStr([ast.Constant(str(text)), *_]):
                    found.add(f"{text}*")
    return frozenset(found)
