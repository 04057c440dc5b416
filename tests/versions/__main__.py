"""Run tests against other minors of Kubernetes, and write the result of each into docs/versions.md.

    python -m tests.versions 1.35 1.37

Without a name, every minor except the usual one. The first run of each builds it with Go.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from tests.support.controlplane.binaries import CHOSEN
from tests.versions.table import PAGE, built, passed, updated, usual

# What the program asks of an API server, what an API server does with our manifests, and whole passes.
TESTS = (
    "clients",
    "controlplane/test_controlplane.py",
    "drainer",
    "manifests",
    "passes/test_cases.py",
    "passes/test_rights.py",
)


def run(minor: str, options: list[str]) -> int | None:
    """Return how many tests passed against a minor; None if one failed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "cluster", f"--junitxml={file}"]
        command += [*options, *(f"tests/real/{one}" for one in TESTS)]
        environment = {**os.environ, CHOSEN: minor, "CONTROLPLANE_REQUIRED": "1"}
        if subprocess.run(command, env=environment, check=False).returncode:
            return None
        (suite,) = ElementTree.parse(file).getroot().iter("testsuite")
        return int(suite.get("tests", 0)) - int(suite.get("skipped", 0))


def main(arguments: list[str]) -> int:
    """Run the named minors; what begins with a dash, and what follows, is for pytest."""
    dash = next((at for at, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    minors, options = arguments[:dash], arguments[dash:]
    others = [minor for minor in built() if minor != usual()]
    if unknown := set(minors) - set(others):
        print(f"no other minor: {', '.join(sorted(unknown))}; there are {', '.join(others)}", file=sys.stderr)
        return 2
    failed = []
    for minor in minors or others:
        count = run(minor, options)
        if count is None:
            failed.append(minor)
            continue
        if any(option.startswith(("-k", "--deselect", "--ignore")) for option in options):
            print("some tests were left out, so docs/versions.md stays as it is", file=sys.stderr)
            continue
        # What was found about one is kept, also if a later one fails.
        result = {minor: passed(count, datetime.now(UTC).date())}
        PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), result), encoding="utf-8")
    if failed:
        print(f"tests failed against Kubernetes {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
