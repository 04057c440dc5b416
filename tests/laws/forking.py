"""A process that has loaded pytest and the libraries once, and runs test files in a fork of itself.

Started by `trials.py` as `python -m tests.laws.forking` in a copy of the program. It loads nothing of the
program, because each fork has to load the mutated one. A request is one line of JSON on standard input: the
test files. The answer is one line of JSON: an `Ended`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection

import pytest

PATIENCE = 120
"""The seconds after which a run is ended. A test that needs it proves nothing, so the list names it."""

TIDYING = 20
"""The seconds that a run gets to tidy up after a test has failed."""

# What the tests load most often and what takes longest to load. A library that is missing is no error.
_LIBRARIES = (
    "hypothesis",
    "hypothesis.strategies",
    "hypothesis.stateful",
    "hypothesis.internal.conjecture.engine",
    "pydantic",
    "pydantic.deprecated.decorator",
    "yaml",
    "click",
    "urllib3",
    "azure.scheduledevents",
    "cryptography.x509",
    "pygments",
    "logging.config",
    "http.server",
    "unittest.mock",
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of test files ended: pytest's exit code, the tests that passed, and the first that did not.

    `code` is None for a run that did not end within `PATIENCE`.
    """

    code: int | None
    passed: int = 0
    failed: str = ""


class _Watching:
    """A pytest plugin that notes what passed and what failed first."""

    def __init__(self, results: Connection) -> None:
        self.results = results
        self.passed = 0
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that passed, or tell the first one that failed."""
        self.passed += report.when == "call" and report.passed
        if report.failed and not self.failed:
            self.failed = report.nodeid
            # At once: a thread that the mutant broke can end the process before pytest ends.
            self.results.send(Ended(1, self.passed, self.failed))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that can't be loaded."""
        if report.failed:
            self.failed = self.failed or report.nodeid


def _run(files: Sequence[str], results: Connection) -> None:
    """Run test files in this process, which ends afterwards."""
    # A group of its own: what the tests start ends with it.
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(silence, number)
    watching = _Watching(results)
    # What is loaded already can't be rewritten for better messages, which nobody reads here.
    options = [
        "-x",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]
    code = pytest.main([*options, *files], plugins=[watching])
    if code != 1 or not watching.failed:
        results.send(Ended(int(code), watching.passed, watching.failed))
    results.close()


def run(files: Sequence[str]) -> Ended:
    """Run test files, by their paths in the current folder, in a fork."""
    forking = multiprocessing.get_context("fork")
    here, there = forking.Pipe(duplex=False)
    child = forking.Process(target=_run, args=(files, there))
    child.start()
    there.close()
    try:
        if not here.poll(PATIENCE):
            return Ended(None)
        ended: Ended = here.recv()
        # Fixtures stop what they started, an API server for example.
        child.join(TIDYING)
    except EOFError:
        # It ended without an answer. Its exit code may be 1, but that is no test that failed.
        return Ended(-1)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid or 0, signal.SIGKILL)
        child.join()
    return ended


def main() -> None:
    """Answer requests until standard input ends."""
    for name in _LIBRARIES:
        with suppress(ModuleNotFoundError):
            if find_spec(name) is not None:
                import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(asdict(run(json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
