"""Try mutants: apply each to a copy of the program, run its tests, and tell which survive."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue

from tests.laws.forking import PATIENCE, Ended
from tests.laws.mutant import Mutant
from tests.laws.places import ROOT, DoesNotFit, Index

_BUILT = frozenset({"build", "dist", ".git"})
"""What lies in the root and is not the program: what was built, and the file that makes it a work tree."""


class Verdict(StrEnum):
    """What became of a mutant, or of its tests before anything was removed."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "SURVIVED"
    NOT_FOUND = "NOT FOUND"
    BROKEN = "BROKEN"
    PASSES = "passes"


_GOOD = frozenset({Verdict.KILLED, Verdict.TIMED_OUT, Verdict.PASSES})


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutant with the test files of which one has to fail. Without a mutant, all of them have to pass."""

    files: tuple[str, ...]
    mutant: Mutant | None = None

    @property
    def name(self) -> str:
        """The rule that is removed."""
        if self.mutant is not None:
            return self.mutant.rule
        return f"nothing removed: {', '.join(dict.fromkeys(map(_short, self.files)))}"

    @property
    def law(self) -> str:
        """The number of the law, `other` for a rule that belongs to none."""
        if self.mutant is None:
            return "-"
        return str(self.mutant.law) if self.mutant.law else "other"


def _short(path: str) -> str:
    return path.partition("::")[0].removeprefix("tests/").removesuffix(".py")


def files_of(mutant: Mutant) -> tuple[str, ...]:
    """Return the test files of which one has to fail: its own, or those of its law."""
    if mutant.test != "tests/laws":
        return (mutant.test,)
    found = sorted(ROOT.glob(f"tests/laws/test_law_{mutant.law:02d}_*.py"))
    return tuple(path.relative_to(ROOT).as_posix() for path in found)


def baselines(selections: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return what to run with nothing removed: each file once, or the tests of it that are named."""
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for files in selections:
        whole = tuple(one.partition("::")[0] for one in files)
        found.setdefault(whole, {}).update(dict.fromkeys(files))
    return tuple(
        files if not set(files).isdisjoint(named) else tuple(named) for files, named in found.items()
    )


def judged(ended: Ended, *, removed: bool) -> tuple[Verdict, str]:
    """Return what a run of tests says, with and without a rule removed, and the test that failed.

    Only a test that ran and failed kills. A file that can't be loaded, or of which every test is skipped,
    says nothing about a rule.
    """
    if ended.code is None:
        return (Verdict.TIMED_OUT if removed else Verdict.BROKEN), f"no end within {PATIENCE} s"
    if ended.code == 0 and not ended.passed:
        return Verdict.BROKEN, "every test was skipped"
    if ended.code == 0:
        return (Verdict.SURVIVED if removed else Verdict.PASSES), ""
    if ended.code != 1 or not ended.failed:
        return Verdict.BROKEN, f"pytest ended with code {ended.code} {ended.failed}"
    return (Verdict.KILLED if removed else Verdict.BROKEN), ended.failed.rpartition("::")[2]


def copy_tree(root: Path, where: Path) -> None:
    """Copy a work tree into a new folder: all that tests read, also the docs and the files of the root.

    Hidden folders, bytecode and what was built stay behind.
    """

    def left_out(folder: str, names: list[str]) -> set[str]:
        built = _BUILT if Path(folder) == root else frozenset()
        hidden = {name for name in names if name.startswith(".") and Path(folder, name).is_dir()}
        return hidden | built | {"__pycache__"}

    shutil.copytree(root, where, ignore=left_out)


class _Tree:
    """A copy of the program and the process that runs its tests. It keeps its bytecode from run to run."""

    def __init__(self, where: Path) -> None:
        self._where = where
        copy_tree(ROOT, where)
        # Of the copy, because a person may edit the program during a run.
        self._index = Index(where)
        surroundings = {**os.environ, "LAWS_PROFILE": "mutants", "PYTHONPATH": str(where)}
        surroundings.pop("PYTHONDONTWRITEBYTECODE", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.laws.forking"],
            cwd=where,
            env=surroundings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def attempt(self, trial: Trial) -> tuple[Verdict, str]:
        """Run the tests of a trial, with its rule removed if it has one."""
        if not trial.files:
            return Verdict.BROKEN, "there is no such test file"
        mutant = trial.mutant
        if mutant is None:
            return judged(self._run(trial.files), removed=False)
        try:
            texts = mutant.files(self._index)
        except DoesNotFit as error:
            return Verdict.NOT_FOUND, str(error)
        with ExitStack() as undo:
            for file, text in texts.items():
                undo.callback(self._write, file, (self._where / file).read_text(encoding="utf-8"))
                self._write(file, text)
            return judged(self._run(trial.files), removed=True)

    def _run(self, files: Sequence[str]) -> Ended:
        asked, answers = self._process.stdin, self._process.stdout
        if asked is None or answers is None:
            msg = "the process of a tree has no pipes"
            raise RuntimeError(msg)
        asked.write(json.dumps(files) + "\n")
        asked.flush()
        return Ended(**json.loads(answers.readline()))

    def _write(self, file: str, text: str) -> None:
        path = self._where / file
        path.write_text(text, encoding="utf-8")
        if path.suffix == ".py":
            # An edit of the same length in the same second looks like no edit.
            Path(cache_from_source(str(path))).unlink(missing_ok=True)


class _Trees:
    """One tree for each core. A tree runs one trial at a time."""

    def __init__(self, folder: Path, count: int, ending: ExitStack) -> None:
        self._free: SimpleQueue[_Tree] = SimpleQueue()
        for number in range(count):
            tree = _Tree(folder / str(number))
            ending.callback(tree.close)
            self._free.put(tree)

    @contextmanager
    def _one(self) -> Iterator[_Tree]:
        tree = self._free.get()
        try:
            yield tree
        finally:
            self._free.put(tree)

    def attempt(self, trial: Trial) -> tuple[Verdict, str, float]:
        """Run one trial, and return its verdict, the test that failed, and the seconds that it took."""
        with self._one() as tree:
            began = time.monotonic()
            verdict, by = tree.attempt(trial)
            return verdict, by, time.monotonic() - began


def try_all(mutants: Sequence[Mutant], *, at_once: int, baseline: bool) -> int:
    """Try mutants, print each verdict and the sums by law, and return 1 when one is not killed, else 0.

    Each file of tests first runs once with nothing removed: what fails anyway proves nothing.
    """
    groups = dict.fromkeys(files_of(mutant) for mutant in mutants)
    trials = [Trial(files) for files in baselines(groups)] if baseline else []
    # Tests of one file follow each other, so that its bytecode and the machine's caches are warm.
    places = {files: place for place, files in enumerate(groups)}
    trials += sorted((Trial(files_of(one), one) for one in mutants), key=lambda one: places[one.files])
    sums: Counter[tuple[str, Verdict]] = Counter()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ending, ThreadPoolExecutor(at_once) as pool:
        trees = _Trees(Path(folder), at_once, ending)
        running = {pool.submit(trees.attempt, trial): trial for trial in trials}
        for done in as_completed(running):
            trial, (verdict, by, seconds) = running[done], done.result()
            sums[trial.law, verdict] += 1
            print(f"{trial.law:>5}  {trial.name:<62}{verdict:<10}{seconds:>6.1f} s  {by}", flush=True)
    return _sum_up(sums)


def _sum_up(sums: Counter[tuple[str, Verdict]]) -> int:
    laws = sorted({law for law, _ in sums} - {"-"}, key=lambda law: (not law.isdigit(), law.zfill(3)))
    columns = (Verdict.KILLED, Verdict.TIMED_OUT, Verdict.SURVIVED, Verdict.NOT_FOUND, Verdict.BROKEN)
    print("\n  law" + "".join(f"{column:>12}" for column in columns))
    for law in laws:
        print(f"{law:>5}" + "".join(f"{sums[law, column]:>12}" for column in columns))
    totals = [
        sum(count for (law, found), count in sums.items() if law != "-" and found is column)
        for column in columns
    ]
    print("  all" + "".join(f"{total:>12}" for total in totals))
    broken = sums["-", Verdict.BROKEN]
    if broken:
        print(f"{broken} test files fail with nothing removed")
    return int(any(count for (_, verdict), count in sums.items() if verdict not in _GOOD))
